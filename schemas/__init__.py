"""Schemas: the data contracts, and the small parts that every other package uses.

Files in reading order: `table` (what a contract is), `inputs` and `outputs` (the tables Assay reads and publishes),
`conform` (entry function `conform`: cast an input to its contract), `usual_names` (what columns are called elsewhere),
`errors` and `spark_errors`, `registry` (entries declared one per file), `section` (base class of the configuration),
`problems` (what is wrong with a refused value), `dates` (the date of a run).
"""
