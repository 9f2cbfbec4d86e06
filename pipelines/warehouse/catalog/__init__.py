"""Tables of a lakehouse catalog, in Delta or Iceberg: copies of committed runs for the readers of that catalog.

A run is committed by its manifest, as without a catalog, and Assay reads its own files. Then each of its tables is
copied into the catalog in one transaction, and `runs` gets its row last, so that whoever chooses a run from `runs`
finds all of its tables. Copying a run again replaces its rows: after a failure it is finished by the next call.

In: a committed run. Out: `<namespace>.<table>`, partitioned by `dt` and `run`, and `<namespace>.runs`.
Entry: `publish_to_catalog` to copy a run, `read_catalog_table` to read the newest runs.

Read in this order: `settings`, `registry` (table formats), `formats/` (one file each), `write` (one transaction),
`publish` (a whole run), `read`, `snapshots` (read inputs from one version of a table).
"""
