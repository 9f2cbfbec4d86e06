"""`assay contract`."""

from __future__ import annotations

from pathlib import Path

import click

from jobs.support.options import debug_option, output_option


@click.command("contract")
@click.option(
    "--format",
    "form",
    type=click.Choice(["odcs"]),
    default="odcs",
    show_default=True,
    help="The standard: odcs is the Open Data Contract Standard 3.1.",
)
@click.option("--to", "folder", type=click.Path(file_okay=False, path_type=Path), required=True, help="The folder.")
@output_option
@debug_option
def command(form: str, folder: Path, output: str) -> None:
    """Write the contracts of the tables that Assay reads and publishes, for a data catalogue.

    \b
    assay contract --format odcs --to contracts
    """
    import json
    from importlib.metadata import version

    import yaml

    from schemas.errors import PublishError
    from schemas.inputs import INPUTS
    from schemas.odcs import build_odcs_contract
    from schemas.outputs import OUTPUTS

    written = {}
    for name, tables in {"inputs": INPUTS, "outputs": OUTPUTS}.items():
        contract = build_odcs_contract(name, tables.values(), version=version("assay"), published=name == "outputs")
        path = folder / f"{name}.{form}.yaml"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(yaml.safe_dump(contract, sort_keys=False, allow_unicode=True, width=120), encoding="utf-8")
        except OSError as error:
            raise PublishError(f"cannot write: {error.strerror}", where=str(path), hint="choose another --to") from None
        written[str(path)] = len(tables)
    if output == "json":
        click.echo(json.dumps([{"path": path, "tables": tables} for path, tables in written.items()]))
        return
    for place, count in written.items():
        click.echo(f"{place}: {count} tables")
