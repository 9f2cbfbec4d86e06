"""The answer corrected by judged queries. Nothing heavy is imported here: commands read it without Spark."""

from __future__ import annotations

from udfs.statistics.plan import Row


def use_correction(row: Row) -> Row:
    """The row of estimates or comparisons with the corrected answer in place of the model's, where there is one."""
    if row.get("delta_corrected") is None:
        return row
    errors = {"stderr": row.get("corrected_stderr"), "degrees": row.get("corrected_degrees")}
    relative = {"relative": row.get("corrected_relative"), "relative_stderr": row.get("corrected_relative_stderr")}
    bounds = {"delta_low": row["corrected_low"], "delta_high": row["corrected_high"]}
    return dict(row) | {"delta": row["delta_corrected"], "hull": False} | bounds | errors | relative
