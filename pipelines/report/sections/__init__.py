"""Sections of the report of one run: each is a function from `ReportData` to markup, or to None where it has no data.

A new section is a file here and an entry in `SECTIONS` of `pipelines/report/render.py`.
"""
