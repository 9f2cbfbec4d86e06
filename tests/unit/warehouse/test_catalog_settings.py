"""The output section, without Spark: what is refused before Java starts, and that it does not change the numbers."""

import datetime as dt
import re
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from pipelines.config.model import Config
from pipelines.inputs.listing import list_locally
from pipelines.plan import define_evaluation, look_ahead
from pipelines.warehouse.catalog.registry import TABLE_FORMATS
from pipelines.warehouse.catalog.settings import OutputSettings
from pipelines.warehouse.views import render_catalog_views
from tests.helpers.published_runs import publish

PAGE = Path(__file__).parents[3] / "docs" / "lakehouse.md"
INPUTS = {"rankings": {"path": "r"}, "judgments": {"path": "j"}}


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"format": "icebreg", "namespace": "lake.q"}, "did you mean 'iceberg'"),
        ({"format": "delta"}, "delta needs a namespace"),
        ({"namespace": "lake.q"}, "format parquet has no namespace"),
        ({"format": "delta", "namespace": "quality"}, "a catalog and a schema"),
        ({"format": "delta", "namespace": "lake.q; DROP TABLE t"}, "a catalog and a schema"),
    ],
)
def test_an_unusable_output_is_refused(section: dict[str, str], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        OutputSettings.model_validate(section)


def test_the_output_does_not_change_what_a_run_computes() -> None:
    plain = Config.model_validate({"inputs": INPUTS})
    copied = Config.model_validate({"inputs": INPUTS, "output": {"format": "iceberg", "namespace": "lake.q"}})
    assert plain.output.format == "parquet"
    assert plain.dump_settings() == copied.dump_settings()


def test_the_examples_of_the_page_are_valid_configurations() -> None:
    examples = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) == 4
    sections = [Config.model_validate({"inputs": INPUTS} | yaml.safe_load(example)) for example in examples]
    assert [config.output.format for config in sections] == ["iceberg", "delta", "parquet", "parquet"]
    assert {config.output.format for config in sections} >= set(TABLE_FORMATS)


def test_views_choose_the_runs_before_the_table() -> None:
    view = render_catalog_views("lake.q", ["labels"])
    assert view.index("lake.q.runs") < view.index("lake.q.labels")
    assert view.count("CREATE OR REPLACE TEMPORARY VIEW labels AS") == 1


def test_only_spark_can_say_that_a_committed_run_is_in_the_catalog(tmp_path: Path) -> None:
    date, warehouse = dt.date(2026, 11, 1), tmp_path / "warehouse"
    for name in INPUTS:
        (tmp_path / name).write_text("")
    inputs = {name: {"path": str(tmp_path / name)} for name in INPUTS}
    plain = Config.model_validate({"inputs": inputs, "warehouse": str(warehouse)})
    copied = Config.model_validate(plain.model_dump() | {"output": {"format": "delta", "namespace": "lake.q"}})
    listings = {name: list_locally(name, source, date) for name, source in plain.sources().items()}
    digests = {name: listing.digest for name, listing in listings.items() if listing is not None}
    publish(warehouse, run=f"{define_evaluation(plain).build_key(date, digests)}-000001")
    with_files, with_catalog = (look_ahead(define_evaluation(config), date) for config in (plain, copied))
    assert with_files is not None and with_files.committed is not None
    assert with_catalog is not None and with_catalog.committed is None
