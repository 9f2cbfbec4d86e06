"""Tracking: log a published run to an experiment tracker, or keep it until the tracker can be reached.

Tables in: the manifest, `segment_metrics`, `comparisons`; small tables travel as artifacts. Tables out: none.
Entry: `track.track_run`. Reading order: protocol, payload, track, outbox, registry, backends (one file per tracker).
"""
