"""`assay track`."""

from __future__ import annotations

import click

from jobs.support.completion import RUN
from jobs.support.options import WAREHOUSE_HELP, debug_option, find_warehouse, output_option
from schemas.printable import format_count


@click.command("track")
@click.option("--config", "config", metavar="FILE", help="The configuration that names the warehouse and the tracker.")
@click.option("--warehouse", metavar="PLACE", help=WAREHOUSE_HELP)
@click.option("--uri", help="The tracking server or store; the configuration's, or the warehouse's own, if not given.")
@click.option(
    "--experiment", default="assay", show_default=True, help="The experiment, where no configuration is given."
)
@click.option("--pending", is_flag=True, help="Send the runs that could not be sent before.")
@click.option("--run", "run", type=RUN, help="Send one run, by id or date; sending it again updates it.")
@output_option
@debug_option
def command(
    config: str | None,
    warehouse: str | None,
    uri: str | None,
    experiment: str,
    pending: bool,
    run: str | None,
    output: str,
) -> None:
    """Log published runs to MLflow or another tracker: the pending ones, or one.

    \b
    assay track --pending --config conf/demo.yaml
    assay track --run 2026-11-01 --warehouse build/demo/warehouse
    """
    import json

    from pipelines.sharing.settings import TrackingSettings
    from pipelines.sharing.tracking.track import send_pending, track_run
    from pipelines.warehouse.runs import find_run
    from pipelines.warehouse.storage import Storage
    from schemas.errors import ConfigurationError

    if pending == (run is not None):
        raise ConfigurationError("no run to send is named", hint="use --pending for all pending runs, or --run for one")
    tracking = TrackingSettings(experiment=experiment)
    if config is not None:
        from pipelines.config.load import load_config

        tracking = load_config(config).config.tracking
    if uri is not None:
        tracking = tracking.model_copy(update={"uri": uri})
    storage = Storage(find_warehouse(warehouse, config))
    if pending:
        places = send_pending(storage, tracking)
    else:
        manifest = find_run(storage, run)
        places = {manifest.run: track_run(storage, manifest, tracking)}
    if output == "json":
        click.echo(json.dumps({"sent": places}))
        return
    for name, place in places.items():
        click.echo(f"Run {name}: {place}")
    click.echo(f"{format_count(len(places), 'run')} sent" if places else "No run is pending.")
