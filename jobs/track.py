"""`assay track`."""

from __future__ import annotations

import click

from jobs.options import debug, output


@click.command("track")
@click.option("--config", "config", metavar="FILE", help="The configuration that names warehouse and MLflow.")
@click.option("--warehouse", metavar="PLACE", help="Where runs are published, where no configuration is given.")
@click.option("--uri", help="The MLflow server or store; the configuration's, or the warehouse's own, if not given.")
@click.option(
    "--experiment", default="assay", show_default=True, help="The experiment, where no configuration is given."
)
@click.option("--pending", is_flag=True, help="Send what could not be sent before.")
@click.option("--run", "run", help="Send one run, by id or date; sent twice it is still one run in MLflow.")
@output
@debug
def command(
    config: str | None,
    warehouse: str | None,
    uri: str | None,
    experiment: str,
    pending: bool,
    run: str | None,
    output: str,
) -> None:
    """Tell MLflow of published runs: of those that wait, or of one.

    \b
    assay track --pending --config conf/demo.yaml
    assay track --run 2026-11-01 --warehouse build/demo/warehouse
    """
    import json

    from pipelines.config_sharing import Tracking
    from pipelines.runs import find_run
    from pipelines.storage import Storage
    from pipelines.track import pending as waiting
    from pipelines.track import send_kept, track
    from schemas.errors import ConfigurationError

    if pending == (run is not None):
        raise ConfigurationError("say what to send", hint="--pending for all that waits, or --run for one run")
    tracking = Tracking(experiment=experiment)
    if config is not None:
        from pipelines.configure import load

        loaded = load(config).config
        tracking, warehouse = loaded.tracking, warehouse or loaded.warehouse
    if warehouse is None:
        raise ConfigurationError("there is no warehouse", hint="give --config or --warehouse")
    if uri is not None:
        tracking = tracking.model_copy(update={"uri": uri})
    storage = Storage(warehouse)
    if pending:
        sent = {payload.run: send_kept(storage, payload, tracking) for payload in waiting(storage)}
    else:
        manifest = find_run(storage, run)
        sent = {manifest.run: track(storage, manifest, tracking)}
    if output == "json":
        click.echo(json.dumps({"sent": sent}))
        return
    for name, place in sent.items():
        click.echo(f"Run {name}: {place}")
    click.echo(f"{len(sent)} runs sent" if sent else "Nothing waits to be sent.")
