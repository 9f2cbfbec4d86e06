"""Inputs: read the configured tables, conform them to their contracts and count the rows.

In: the configured sources. Out: one conformed table per input, its counts by reason, and the rows for `quarantine`.
Entry functions: `read_input`, then `validate_inputs`.

Files in reading order: `settings` (what can be configured), `format_registry` and `formats/` (one file per source
format), `foreign` (what presets share), `listing` (files and their digest, also without Spark), `shape` (expressions,
exploded arrays and views), `read` (tables), `count` (one pass over an input), `plain_files`, `count_files` and
`log_rows` (Parquet files that workers read without Spark), `opinions` (its columns), `contracts`, `day_files` and
`days` (a log whose days are read one by one), `validate` (all inputs of a run), `in_memory` (one table without Spark),
`sample`, `unreadable` and `guess` (a first look at a file, without Spark).
"""
