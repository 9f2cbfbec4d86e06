"""Inputs that workers can read without Spark, as far as their settings say: before Spark starts, nothing else is known.

`plain_files` finds out whether their files can be read so.
"""

from __future__ import annotations

from pipelines.inputs.settings import InputSource


def is_plain(source: InputSource) -> bool:
    """Whether an input is Parquet whose rows no setting shapes."""
    shaped = source.table or source.view or source.where or source.explode or source.options
    return source.format == "parquet" and not shaped
