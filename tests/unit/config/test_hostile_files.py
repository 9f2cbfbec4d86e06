"""Configurations that are broken or hostile end with exit code 2, at once, and never with a stack trace."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import schemas.redact
from pipelines.config.load import load_config
from pipelines.config.model import Config
from pipelines.warehouse.storage import Storage
from schemas.errors import ConfigurationError

INPUTS = "inputs:\n  rankings: {path: r}\n  judgments: {path: j}\n"
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


def refuse(folder: Path, text: str, *overrides: str) -> str:
    path = folder / "c.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_config(path, overrides)
    assert len(str(caught.value)) < 2000
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (BOMB, "more than 10,000 values, with aliases written out"),
        (f"{BOMB}quality: {{a: *i}}", "more than 10,000 values"),
        (INPUTS + "trained: &a {x: *a}", "an alias refers to itself"),
        (INPUTS + "metrics: &a [*a]", "an alias refers to itself"),
        ("inputs: " + "[" * 5000, "nested too deeply"),
        ("inputs: " + "{a: " * 5000, "nested too deeply"),
        ("extends: 5", "cannot extend 5"),
        ("extends: {a: b}", "write the path of a file, or a list of them"),
        ("extends: [base.yaml, 5]", "cannot extend"),
        ("extends:", "cannot extend None"),
        ('extends: ""', "cannot extend ['']"),
        ('extends: "a\\0b"', "cannot extend"),
        ("a: 2026-13-45", "month must be in 1..12"),
        ("a: " + "9" * 5000, "digits"),
        ("a: !!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("? [a]\n: b", "unhashable"),
        (INPUTS + "1: 2", "a key must be text; write it in quotes"),
        (INPUTS + f"warehouse: [{'x' * 100_000}]", "wrong value ['xxx"),
        (INPUTS + "# " + "x" * (1 << 20), "larger than 1 MB"),
    ],
    ids=lambda text: text[:30],
)
def test_a_hostile_file_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    assert reason in refuse(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("inputs: {rankings: {path: 3}, judgments: {path: j}}", "path: text is needed or a list is needed"),
        ("inputs: {rankings: {path: ''}, judgments: {path: j}}", "the path is empty (in"),
        ("inputs: {rankings: {path: [r, 3]}, judgments: {path: j}}", "at inputs.rankings.path[1]: text is needed"),
        (INPUTS + "compare: {min_judged: x}", "at compare.min_judged: a number is needed or it must be 'auto'"),
        (INPUTS + "trained: {a: }", "no value in c.yaml, line 4, at trained.a: a mapping of keys to values is needed"),
        (INPUTS + "trained: {a: {first: 2026-01-01}}", "missing key in c.yaml, line 4, at trained.a.last"),
    ],
)
def test_a_value_of_which_several_kinds_are_accepted_has_one_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_config(Path("c.yaml"))
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)  # one problem, without the names that pydantic gives to kinds
    assert not any(name in str(caught.value) for name in ("function", "tuple", "literal", "constrained"))


@pytest.mark.parametrize(
    "line",
    [
        'password: "{}',
        "password: *{}",
        "password: !{} x",
        "{{user: a, password: *{}}}",
        "pwd: '{}'x",
        "password: [{}",
        "token: {{{}",
        "password: {}\n      next: 1",
    ],
)
def test_an_error_of_yaml_quotes_no_secret(tmp_path: Path, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas.redact, "_known", set())
    message = refuse(tmp_path, f"{INPUTS}spark:\n  settings:\n    {line.format('hunter2-Xyz')}\n")
    assert "hunter2" not in message
    assert "cannot parse the YAML" in message and "line " in message


@pytest.mark.parametrize("value", ['"{}', "*{}", "!{} x", "[{}", "{{{}", "{}: {}: a"])
def test_an_error_of_an_option_quotes_no_secret(tmp_path: Path, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas.redact, "_known", set())
    text = value.replace("{}", "hunter2-Xyz").replace("{{", "{")
    assert "hunter2" not in refuse(tmp_path, INPUTS, f"spark.settings.x.password={text}")


@pytest.mark.parametrize(
    "text",
    [
        "tracking: {uri: [hunter2-Xyz], enabled: {password: hunter2-Xyz}}",
        "tracking: {password: [hunter2-Xyz]}",
        "warehouse: [hunter2-Xyz]\nspark: {settings: {x.secret: [[hunter2-Xyz]]}}",
    ],
)
def test_a_wrong_value_under_the_name_of_a_secret_is_hidden(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schemas.redact, "_known", set())
    assert "hunter2" not in refuse(tmp_path, INPUTS + text)


def test_files_that_extend_each_other_twice_are_refused(tmp_path: Path) -> None:
    (tmp_path / "0.yaml").write_text(INPUTS)
    for number in range(1, 40):  # 2^39 files to read
        (tmp_path / f"{number}.yaml").write_text(f"extends: [{number - 1}.yaml, {number - 1}.yaml]\n")
    assert "extends more than 100 files" in refuse(tmp_path, "extends: 39.yaml")


def test_an_endless_file_is_refused(tmp_path: Path) -> None:
    assert "larger than 1 MB" in refuse(tmp_path, "extends: /dev/zero")


@pytest.mark.parametrize("override", [f"metrics={BOMB}", "metrics=&a [*a]", "a" + ".a" * 5000 + "=1", "metrics=[" * 2])
def test_a_hostile_override_is_refused(tmp_path: Path, override: str) -> None:
    message = refuse(tmp_path, INPUTS, override)
    assert "--set" in message or "nested too deeply" in message


@pytest.mark.parametrize("key", ["warehouse", "inputs.rankings.path", "inputs.rankings.table"])
@pytest.mark.parametrize("value", ["", "   "])
def test_an_empty_place_is_refused(tmp_path: Path, key: str, value: str) -> None:
    inputs = INPUTS if "table" not in key else INPUTS.replace("path: r", "table: t")
    message = refuse(tmp_path, inputs, f"{key}='{value}'")
    assert "the path is empty" in message
    assert key in message


@pytest.mark.parametrize("place", ["a\0b", "x" * 5000])
def test_a_warehouse_that_no_disk_can_have_is_refused(place: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot use the folder") as caught:
        Storage(place)
    assert len(str(caught.value)) < 500


def test_a_warehouse_that_is_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ConfigurationError, match="cannot use the folder"):
        Storage(str(tmp_path / "loop"))


def test_the_name_of_a_configuration_with_a_zero_byte_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="is not the path of a file"):
        load_config("a\0b.yaml")


@pytest.mark.parametrize("place", ["warehouse", "inputs.rankings.path", "inputs.judgments.path"])
@pytest.mark.parametrize("path", ["", " ", "\t", "\n"])
def test_a_path_without_a_name_is_refused(tmp_path: Path, place: str, path: str) -> None:
    content: dict[str, Any] = {"inputs": {"rankings": {"path": "r"}, "judgments": {"path": "j"}}}
    *sections, key = place.split(".")
    functools.reduce(lambda section, name: section[name], sections, content)[key] = path
    assert "the path is empty" in refuse(tmp_path, yaml.safe_dump(content))


@pytest.mark.parametrize("place", ["file://", "file:", "file:relative", "file://host/x", "s3://", "s3a:///", "gs://"])
def test_a_warehouse_that_names_no_place_is_refused(place: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot use the warehouse"):
        Storage(place)


@pytest.mark.parametrize("place", ["file:{}", "file://{}", "{}", "file://{}/../w"])
def test_a_warehouse_on_the_local_disk_is_the_same_folder_however_it_is_written(tmp_path: Path, place: str) -> None:
    assert Storage(place.format(tmp_path / "w")).uri == f"file://{tmp_path}/w"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tracking: {seconds: .inf}", "a finite number is needed"),
        ("tracking: {seconds: 1e999}", "a finite number is needed"),
        ("conventions: {rel: .nan}", "a finite number is needed"),
        ("conventions: {max_grade: .inf}", "a finite number is needed"),
        ("metrics: [ndcg@99999999999999999999]", "cannot read the metric"),
        (f"metrics: [ndcg@{'9' * 5000}]", "cannot read the metric"),
        ("metrics: [ndcg@\u0661\u0660]", "cannot read the metric"),  # the digits of another script
    ],
    ids=lambda text: text[:30],
)
def test_numbers_that_nothing_can_be_computed_with_are_refused(tmp_path: Path, text: str, reason: str) -> None:
    assert reason in refuse(tmp_path, INPUTS + text)


@pytest.mark.parametrize(
    "text", ["trained: {x: {a: 1}}", "quality: {volume: {a: 1}}", "gate: [{a: 1}]", "labels: {grade: {a: {b: 1}}}"]
)
def test_an_unknown_key_is_refused_wherever_it_is(tmp_path: Path, text: str) -> None:
    assert "unknown key" in refuse(tmp_path, INPUTS + text)


@pytest.mark.parametrize(
    "where",
    [
        "reflect('java.lang.System', 'exit', 1) = 1",
        "a = 1 or JAVA_METHOD ('x', 'y') is null",
        "`try_reflect`('x', 'y') = 1",
        "system.builtin.reflect/**/('x', 'y') = 1",
        "identifier('re' || 'flect')('x', 'y') = 1",
        "a = 1 /* ' */ or reflect('x', 'y') = 1 /* ' */",
        "a = 1 -- '\nor reflect('x', 'y') = 1 -- '",
        "a = r'\\' or reflect('x', 'y') = r'\\'",
        "`it's` = 1 or reflect('x', 'y') = 1 or `it's` = 2",
        "\"reflect\" ('x', 'y') = 1",
        "exists (SELECT TRANSFORM(a) USING 'sh -c ls' AS (b) FROM VALUES (1) AS t(a))",
        'exists (FROM t MAP a USING "ls" AS b)',
        "exists (SELECT TRANSFORM(a) using/* x */--\n r'ls' AS (b) FROM t)",
        " ",
    ],
)
def test_a_condition_that_runs_code_is_refused(tmp_path: Path, where: str) -> None:
    text = yaml.safe_dump({"inputs": {"rankings": {"path": "r", "where": where}, "judgments": {"path": "j"}}})
    assert "at inputs.rankings.where" in refuse(tmp_path, text)


def test_a_condition_may_mention_such_words_as_text(tmp_path: Path) -> None:
    where = (
        "title = 'it''s java_method(1) using \"x\"' and note = \"reflect\" and exists(transform(a, x -> x = 'using'), "
        "y -> y) and dt = '{date}' and id in (select id from t join u using (id))"
    )
    rankings = {"path": "r", "where": where}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump({"inputs": {"rankings": rankings, "judgments": {"path": "j"}}}))
    source = load_config(tmp_path / "c.yaml").config.inputs.rankings
    assert source is not None
    assert source.where == where


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.dates()
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(list(Config.model_fields)), VALUES)
def test_any_value_of_a_key_is_used_or_refused(
    tmp_path_factory: pytest.TempPathFactory, key: str, value: object
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    content = {"inputs": {"rankings": {"path": "r"}, "judgments": {"path": "j"}}} | {key: value}
    path.write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")
    try:
        load_config(path)
    except ConfigurationError as error:
        assert error.exit_code == 2
