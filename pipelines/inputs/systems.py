"""Systems and the files they come from: one that is in two files is refused, one without a usable row is reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pyspark.sql import functions as F

from pipelines.inputs.count import MAX_GROUPS, CountResult
from schemas.conform import SOURCE_FILE, ConformedTable
from schemas.errors import InputError

MAX_NAMED = 5  # systems or files that a message names


def require_one_file_per_system(table: ConformedTable, result: CountResult, *, where: str) -> None:
    """Refuse a system that is in several files: its lists would be mixed."""
    if not result.split_systems:
        return
    system = min(result.split_systems)
    rows = table.marked_rows.where(table.reason.isNull() & (F.col("system") == system))
    files = sorted(row[0] for row in rows.select(SOURCE_FILE).distinct().limit(MAX_NAMED + 1).collect())
    others = f", and so do {len(result.split_systems) - 1} more tags" if len(result.split_systems) > 1 else ""
    raise InputError(
        f"{_join_names(files)} have the system {system!r}{others}: their lists would be mixed",
        where=where,
        hint="set options: {system: file} to name each system by its file, or options: {system: tag} if these files "
        "are parts of one run; systems that are named by their files need files with different names",
    )


def find_lost_systems(table: ConformedTable) -> tuple[str, ...]:
    """The systems, and the files, of which no row can be used; empty where there are too many to tell."""
    keys = ["system", SOURCE_FILE] if table.has_files else ["system"]
    usable = F.count_if(table.reason.isNull()).alias("usable")
    groups = table.marked_rows.groupBy(*keys).agg(usable).limit(MAX_GROUPS + 1).collect()
    if len(groups) > MAX_GROUPS:
        return ()
    rows: Counter[str] = Counter()
    for group in groups:
        for name in (group[key] for key in keys if group[key] is not None):
            rows[name] += group["usable"]
    return tuple(sorted(name for name, number in rows.items() if not number))


def _join_names(names: Sequence[str]) -> str:
    """Several names in words; one more than are shown stands for all others."""
    if len(names) > MAX_NAMED:
        return f"{', '.join(names[:MAX_NAMED])} and others"
    return f"{', '.join(names[:-1])} and {names[-1]}"
