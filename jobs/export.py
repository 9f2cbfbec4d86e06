"""Write a published run in the format of another tool: `assay export`."""

from __future__ import annotations

from pathlib import Path

import click

from jobs.support.options import debug_option, output_option, warehouse_option


@click.command("export")
@click.argument("kind", type=click.Choice(["trec"]), expose_value=False)
@warehouse_option
@click.option("--run", help="The run, by id or date (default: the newest).")
@click.option(
    "--to", "target", type=click.Path(path_type=Path, file_okay=False), required=True, help="The folder to write to."
)
@output_option
@debug_option
def command(warehouse: str, run: str | None, target: Path, output: str) -> None:
    """Write the lists and labels of a run as TREC files, one run file per system, for trec_eval.

    \b
    assay export trec --warehouse results --to trec
    trec_eval trec/qrels.txt trec/new.run
    """
    import json

    from jobs.support.session import open_session
    from jobs.support.terminal import echo_line
    from pipelines.config.spark import SparkSettings
    from pipelines.scoring.read_again import require_rankings
    from pipelines.warehouse.runs import find_run
    from pipelines.warehouse.storage import Storage

    storage = Storage(warehouse)
    manifest = find_run(storage, run, having="query_metrics")
    require_rankings(manifest, "exported")
    with open_session(SparkSettings(), "assay export") as spark:
        from pipelines.scoring.export_trec import export_trec

        files = export_trec(spark, storage, manifest, target)
    if output == "json":
        runs = {system: str(path) for system, path in files.runs.items()}
        facts = {"run": manifest.run, "runs": runs, "qrels": str(files.qrels), "changed": files.changed}
        click.echo(json.dumps(facts, ensure_ascii=False))
        return
    for name in files.changed:
        click.echo(f"! the {name} have changed since run {manifest.run}")
    for system, path in files.runs.items():
        echo_line(f"{system}: {path}")
    click.echo(f"labels: {files.qrels}")
