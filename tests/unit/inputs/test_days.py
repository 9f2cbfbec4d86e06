"""What the statistics of a day depend on, and what they do not."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from pyspark.sql import types as T

from pipelines.config.model import Config
from pipelines.inputs.days import build_day_key, describe_day_settings
from pipelines.inputs.listing import list_locally
from pipelines.inputs.read import InputTable
from pipelines.inputs.settings import InputSource

DAY = dt.date(2026, 11, 1)


def build_config(
    impressions: dict[str, Any] | None = None, labels: dict[str, Any] | None = None, **more: Any
) -> Config:
    log = {name: {"path": f"log/{name}/{{date}}", "days": 28} for name in ("impressions", "interactions")}
    log["impressions"] |= impressions or {}
    return Config.model_validate({"inputs": log, "labels": {"incremental": True} | (labels or {})} | more)


def build_key(config: Config, columns: tuple[str, ...] = ("serp_id",), day: dt.date = DAY, digest: str = "a") -> str:
    schema = T.StructType([T.StructField(name, T.StringType()) for name in columns])
    table: Any = InputTable(None, (), (), 1, "", file_schema=schema)  # type: ignore[arg-type]
    settings = describe_day_settings(config, {"impressions": table, "interactions": table})
    return build_day_key(day, settings, {"impressions": digest, "interactions": "b"})


def test_a_day_depends_on_its_date_files_columns_and_rules() -> None:
    plain = build_key(build_config())
    others = [
        build_key(build_config(), day=DAY + dt.timedelta(days=1)),
        build_key(build_config(), digest="changed"),
        build_key(build_config(), columns=("serp_id", "device")),
        build_key(build_config({"where": "position < 5"})),
        build_key(build_config({"columns": {"query_id": "q"}})),
        build_key(build_config(labels={"contexts": ["device"]})),
        build_key(build_config(labels={"denoise": {"clockwork": {"enabled": False}}})),
        build_key(build_config(labels={"attribution": {"window_days": 3}})),
        build_key(build_config(labels={"propensity": {"estimator": "ubm"}})),
        build_key(build_config(checks="fast")),
    ]
    assert len({plain, *others}) == 1 + len(others)


@pytest.mark.parametrize(
    "labels",
    [
        {"grade": {"minimum_users": 5}},
        {"propensity": {"estimator": "em"}},
        {"propensity": {"shuffled_systems": ["random"]}},
        {"propensity": {"max_position": 7}},
    ],
    ids=str,
)
def test_a_day_does_not_depend_on_curves_and_grades(labels: dict[str, Any]) -> None:
    assert build_key(build_config(labels=labels)) == build_key(build_config())


def test_a_day_does_not_depend_on_where_results_go() -> None:
    assert build_key(build_config(warehouse="elsewhere", metrics=["mrr"])) == build_key(build_config())


@pytest.mark.parametrize(
    ("impressions", "message"),
    [
        ({"path": "log/impressions", "days": 1}, "a path with {date}"),
        ({"path": None, "table": "a.b", "days": 28}, "a path with {date}"),
        ({"days": 1}, "a window of several days"),
        ({"days": 7}, r"inputs.impressions.days \(7\)"),
        ({"format": "serp_arrays"}, "the format serp_arrays reads whole logs"),
        ({"where": "day = '{date}'"}, "its where cannot have {date}"),
    ],
)
def test_a_log_whose_days_cannot_be_read_one_by_one_is_refused(impressions: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        build_config(impressions)


def test_incremental_labels_need_a_log() -> None:
    inputs = {"rankings": {"path": "rankings"}}
    with pytest.raises(ValidationError, match="needs a log"):
        Config.model_validate({"inputs": inputs, "labels_of": "2026-11-01", "labels": {"incremental": True}})


def test_a_day_without_files_is_listed_as_empty(tmp_path: Path) -> None:
    listing = list_locally("impressions", InputSource(path=f"{tmp_path}/{{date}}"), DAY, required=False)
    assert listing is not None
    assert (listing.files, listing.places, listing.missing_days) == (0, (), ("2026-11-01",))
