"""The configuration: layers, environment, origins, and errors that name the place."""

from pathlib import Path

import pytest

from pipelines.config import Config
from pipelines.configure import load
from schemas.errors import ConfigurationError

INPUTS = "inputs:\n  rankings: {path: r}\n  judgments: {path: j}\n"


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def error(path: Path, *overrides: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load(path, overrides)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_base_is_under_profile_is_under_set(tmp_path: Path) -> None:
    write(tmp_path, "base.yaml", INPUTS + "warehouse: from base\nmax_rejected: 0.1\nmetrics: [recall@5]\n")
    profile = write(tmp_path, "profile.yaml", "extends: base.yaml\nwarehouse: from profile\nmax_rejected: 0.2\n")
    loaded = load(profile, ["max_rejected=0.3", "inputs.rankings.format=csv"])
    assert loaded.config.metrics == ("recall@5",)
    assert loaded.config.warehouse == "from profile"
    assert loaded.config.max_rejected == 0.3
    assert loaded.config.inputs.rankings is not None
    assert loaded.config.inputs.rankings.format == "csv"
    assert loaded.config.inputs.rankings.path == "r"
    assert loaded.origin("metrics") == str(tmp_path / "base.yaml")
    assert loaded.origin("warehouse") == str(profile)
    assert loaded.origin("max_rejected") == "--set max_rejected"
    assert loaded.origin("conventions.ties") == "default"


def test_environment_variables_are_expanded_where_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACE", "s3://bucket")
    text = INPUTS + "warehouse: ${PLACE}/${TEAM:-search}/$${x}\n"
    assert load(write(tmp_path, "c.yaml", text)).config.warehouse == "s3://bucket/search/${x}"
    message = error(write(tmp_path, "d.yaml", INPUTS + "warehouse: ${NOT_SET_ANYWHERE}\n"))
    assert "NOT_SET_ANYWHERE is not set" in message
    assert f"{tmp_path / 'd.yaml'} at warehouse" in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("segmants: [device]", "at segmants: did you mean 'segments'?"),
        ("spark: {mastr: local}", "at spark.mastr: did you mean 'master'?"),
        ("metrics: [recall@1, ndgc@10]", "unknown metric 'ndgc@10': did you mean 'ndcg@10'?"),
        ("metrics: [recall@1, ndgc@10]", "at metrics[1]"),
        ("metrics: [ndcg@10, ndcg(gain=exp2)@10]", "ndcg@10 is listed twice"),
        ("metrics: []", "at metrics"),
        ("max_rejected: plenty", "wrong value 'plenty'"),
        ("max_rejected: 2", "at max_rejected"),
        ("conventions: {ties: coin}", "'doc_id_desc', 'doc_id_asc' or 'error'"),
        ("segments: [device]", "segments need inputs.queries"),
        ("warehouse: [a", "not a YAML file"),
        ("warehouse: a\nwarehouse: b", "the key 'warehouse' stands twice"),
    ],
)
def test_a_mistake_is_named_with_its_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, "c.yaml", INPUTS + text + "\n")
    said = error(path)
    assert message in said
    assert str(path) in said


def test_several_mistakes_are_told_at_once(tmp_path: Path) -> None:
    said = error(
        write(tmp_path, "c.yaml", "inputs: {rankings: {path: r, format: xls}}\nmax_rejected: 2\nsegmants: 1\n")
    )
    assert "unknown format 'xls'" in said
    assert "at max_rejected" in said
    assert "did you mean 'segments'?" in said


def test_a_file_that_is_not_there_is_named_with_its_neighbours(tmp_path: Path) -> None:
    write(tmp_path, "prod.yaml", INPUTS)
    assert "did you mean 'prod.yaml'?" in error(tmp_path / "prd.yaml")


def test_a_configuration_cannot_extend_itself(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", "extends: b.yaml\n")
    write(tmp_path, "b.yaml", "extends: a.yaml\n")
    assert "extends itself" in error(tmp_path / "a.yaml")


def test_a_source_is_a_path_or_a_table(tmp_path: Path) -> None:
    assert "give either path or table" in error(write(tmp_path, "c.yaml", INPUTS), "inputs.rankings.table=t")
    assert "needs {date} in path" in error(write(tmp_path, "d.yaml", INPUTS), "inputs.rankings.days=7")


def test_a_segment_must_be_able_to_name_a_column(tmp_path: Path) -> None:
    path = write(tmp_path, "c.yaml", INPUTS)
    queries = "inputs.queries.path=q"
    assert "cannot name a column" in error(path, queries, "segments=['device type']")
    assert "has already" in error(path, queries, "segments=[weight]")
    assert load(path, [queries, "segments=[a, [a, b]]"]).config.segments == (("a",), ("a", "b"))


def test_secrets_are_hidden_and_do_not_decide_the_run(tmp_path: Path) -> None:
    path = write(tmp_path, "c.yaml", INPUTS + 'spark: {settings: {fs.s3a.secret.key: hush, "spark.x": true}}\n')
    config = load(path).config
    assert config.published()["spark"]["settings"] == {"fs.s3a.secret.key": "(hidden)", "spark.x": "true"}
    assert "hush" not in str(config.settings())


def test_the_configuration_cannot_be_changed(tmp_path: Path) -> None:
    config = load(write(tmp_path, "c.yaml", INPUTS)).config
    with pytest.raises(ValueError, match="frozen"):
        config.warehouse = "elsewhere"  # type: ignore[misc]
    assert isinstance(config, Config)


@pytest.mark.parametrize("profile", sorted(p.name for p in Path("conf").glob("*.yaml")))
def test_every_shipped_profile_is_valid(profile: str) -> None:
    source = Path("conf") / profile
    assert load(source, ["inputs.rankings.path=r", "inputs.judgments.path=j", "inputs.queries.path=q"]).config.metrics


def test_labels_from_behaviour_count_where_enough_is_judged() -> None:
    people = {"rankings": {"path": "r"}, "judgments": {"path": "j"}}
    log = {"rankings": {"path": "r"}, "impressions": {"path": "i"}, "interactions": {"path": "c"}}
    metrics = ["ndcg@10", "recall@20", "judged@10", "mrr"]

    def read(**changes: object) -> Config:
        return Config.model_validate({"metrics": metrics, "inputs": log} | changes)

    assert (read().min_judged, read(inputs=people).min_judged) == (0.7, None)
    assert read(compare={"min_judged": 0.5}, inputs=people).min_judged == 0.5
    assert read(compare={"min_judged": None}).min_judged is None
    assert read(conventions={"unjudged": "zero"}).min_judged is None
    assert [spec.name for spec in read().specs] == [*metrics, "judged@20"]
    assert [read().judged_key(spec) for spec in read().specs] == ["judged_at_10", "judged_at_20", None, None, None]
    assert [spec.name for spec in read(inputs=people).specs] == metrics
