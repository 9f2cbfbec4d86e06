"""Sharing: what follows a committed run. None of it can undo the run.

Tables in: all published tables of the run and its manifest. Tables out: none; a report in `reports/` of the warehouse,
figures for Prometheus, a run in the tracking backend (or a payload in `tracking/pending`).
Entry: `share.share_run`. Reading order: settings, share, deadline, prometheus, tracking.
"""
