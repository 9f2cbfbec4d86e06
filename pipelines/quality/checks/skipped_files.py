"""Every file of an input is read."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.quality.registry import Finding, QualityFacts, check


@check(
    tables="every input with a local path",
    severity="warn",
    threshold=0,
    measures="files and folders beside the data that may be skipped",
    advice="move them away, rename them, or set options: {recursiveFileLookup: true} to read subfolders",
)
def skipped_files(facts: QualityFacts, threshold: float) -> Iterator[Finding]:
    """Spark ignores files whose names begin with a dot or an underscore, and subfolders that are no partitions."""
    for table, figures in facts.select_tables("skipped"):
        skipped = figures["skipped"]
        if skipped:
            yield Finding(
                table=table,
                passed=len(skipped) <= threshold,
                observed=f"{len(skipped)} files or folders are skipped",
                allowed=f"at most {threshold:g}",
                sample=tuple(skipped[:3]),
            )
