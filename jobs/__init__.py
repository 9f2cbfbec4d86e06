"""The command line: one file per command, each with a click `command` that `cli` imports when it is called.

In: a configuration or a warehouse. Out: published runs, tables and JSON on the terminal, an exit code.
Entry: `cli.main`, installed as `assay`; `evaluate.py` and `label.py` can also be passed to spark-submit.

`support` has what commands share; `docs` writes the generated pages of the documentation; `demo` is `make demo`.
"""
