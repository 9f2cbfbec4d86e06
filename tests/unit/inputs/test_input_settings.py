"""Settings of inputs: expressions, views and several paths, refused with their key before a JVM starts."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipelines.config.load import load_config
from pipelines.inputs.listing import list_locally
from pipelines.inputs.settings import InputSource
from schemas.errors import ConfigurationError, DataQualityError, InputError

DAY = dt.date(2026, 11, 1)


def refuse(folder: Path, **rankings: Any) -> str:
    path = folder / "c.yaml"
    path.write_text(yaml.safe_dump({"inputs": {"rankings": rankings, "judgments": {"path": "j"}}}))
    with pytest.raises(ConfigurationError) as caught:
        load_config(path)
    return str(caught.value)


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ("(rank + 1", "lacks a closing ')'"),
        ("rank) + 1", "a ')' without its counterpart"),
        ("concat('a, b)", "a quote in"),
        ("explode(hits)", "name the array in `explode` beside `columns`, and use `item` and `pos` here"),
        ("uuid()", "uuid returns a different value each time, so that no run could be repeated: derive the value from"),
        ("reflect('java.lang.System', 'exit', 1)", "it can run any code"),
        (" ", "the SQL is empty"),
        ({"from": "rank", "values": {}}, "1 or more entries"),
        ({"values": {"a": "b"}}, "from"),
    ],
)
def test_an_expression_that_cannot_be_used_is_refused_at_its_key(tmp_path: Path, column: Any, reason: str) -> None:
    message = refuse(tmp_path, path="r", columns={"rank": column})
    assert reason in message
    assert "at inputs.rankings.columns.rank" in message
    assert re.search(r"c\.yaml, line [6-8], at", message)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ({"path": "r", "table": "t"}, "give either path or table, or a view"),
        ({"path": []}, "give either path or table, or a view"),
        ({"path": "r", "view": "select 1"}, "give either path or table, or a view"),
        ({"view": "select 1"}, "view reads no source"),
        ({"view": "select * from {a}", "sources": {"b": {"path": "p"}}}, "view reads {a}, which sources lacks"),
        (
            {"view": "select * from {a}", "sources": {"a": {"path": "p"}, "b": {"path": "p"}}},
            "sources.b is not used: write {b} in view",
        ),
        ({"view": "select rand() from {a}", "sources": {"a": {"path": "p"}}}, "rand returns a different value"),
        ({"path": ["a/{date}", "b"], "days": 2}, "needs {date} in path"),
        ({"path": "r", "format": "ubi", "options": {"first": "0"}}, "the format ubi has no option 'first'"),
        ({"path": "r", "format": "ubi", "options": {"first_ordinal": "2"}}, "is '2': it must match auto|0|1"),
        (
            {"view": "select * from {a}", "sources": {"a": {"path": "p", "format": "ubi"}}},
            "the format ubi gives impressions, interactions, judgments, not a source of a view",
        ),
    ],
)
def test_a_source_that_does_not_say_what_to_read_is_refused(tmp_path: Path, source: Any, reason: str) -> None:
    message = refuse(tmp_path, **source)
    assert reason in message
    assert "inputs.rankings" in message


def test_a_preset_is_refused_for_a_table_that_it_does_not_give(tmp_path: Path) -> None:
    assert "the format ga4 gives impressions, interactions, not rankings" in refuse(tmp_path, path="r", format="ga4")


def test_an_error_of_a_run_names_the_line_of_its_key(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("inputs:\n  judgments: {path: j}\n  rankings: {path: r}\n")
    path = tmp_path / "c.yaml"
    path.write_text("extends: base.yaml\ninputs:\n  rankings:\n    columns:\n      rank: pos + 1\n")
    loaded = load_config(path, ["inputs.rankings.where=x"])
    for where, place in {
        "inputs.rankings.columns.rank": f"{path}, line 5, at inputs.rankings.columns.rank",
        "inputs.judgments: j": f"{tmp_path / 'base.yaml'}, line 2, at inputs.judgments: j",
        "inputs.rankings.where": "--set inputs.rankings.where at inputs.rankings.where",
        "inputs.judgments.options.split": f"{tmp_path / 'base.yaml'}, line 2, at inputs.judgments.options.split",
        "inputs.queries.options.split": "inputs.queries.options.split",
        "run 7": "run 7",
    }.items():
        with pytest.raises(InputError) as caught, loaded.locate_errors():
            raise InputError("wrong", where=where, hint="write it otherwise")
        assert (caught.value.where, caught.value.hint) == (place, "write it otherwise")
    for fix, line in {"inputs.rankings.columns.rank: pos + 2": 5, "inputs.rankings.columns.doc_id: id": 4}.items():
        with pytest.raises(DataQualityError) as failed, loaded.locate_errors():
            raise DataQualityError("wrong", where="run 7", hint=f"write {fix}", details=["checks"])
        assert (failed.value.where, failed.value.hint) == ("run 7", f"write {fix} ({path}, line {line})")
        assert failed.value.details == ["checks"]


def test_values_are_mapped_by_an_expression_and_numbers_are_constants() -> None:
    columns = {"kind": {"from": "action", "values": {"add_to_cart": "cart", "it's\\": "click"}}, "rank": 1, "x": True}
    source = InputSource.model_validate({"path": "p", "columns": columns})
    text = "CAST((action) AS STRING)"
    assert source.columns == {
        "kind": f"CASE {text} WHEN 'add_to_cart' THEN 'cart' WHEN 'it\\'s\\\\' THEN 'click' ELSE {text} END",
        "rank": "1",
        "x": "true",
    }
    assert InputSource.model_validate(source.model_dump(mode="json")) == source


def test_several_paths_are_listed_together_and_none_may_be_missing(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f.csv").write_text("x" * 3)
    both = InputSource(path=(f"{tmp_path}/a", f"{tmp_path}/b"), format="csv")
    listing = list_locally("rankings", both, DAY)
    assert listing is not None
    assert (listing.files, listing.bytes, listing.missing_days) == (2, 6, ())
    with pytest.raises(InputError, match=r"rankings does not exist or has no files .*/c"):
        list_locally("rankings", InputSource(path=(f"{tmp_path}/a", f"{tmp_path}/c")), DAY)


def test_a_view_is_listed_as_its_sources_and_its_digest_follows_each_of_them(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x")
    (tmp_path / "b.csv").write_text("yy")
    sources = {name: {"path": f"{tmp_path}/{name}.csv", "format": "csv"} for name in ("a", "b")}
    view = InputSource.model_validate({"view": "select * from {a} join {b}", "sources": sources})
    before = list_locally("rankings", view, DAY)
    assert before is not None
    assert (before.files, before.bytes) == (2, 3)
    (tmp_path / "b.csv").write_text("yyy")
    after = list_locally("rankings", view, DAY)
    assert after is not None
    assert after.digest != before.digest
    assert after.parts["a"] == before.parts["a"]
