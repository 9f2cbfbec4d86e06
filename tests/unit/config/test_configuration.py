"""The configuration: layers, environment, origins, and errors that name the place."""

from pathlib import Path
from typing import Any

import pytest

from pipelines.config.load import load_config
from pipelines.config.model import Config
from schemas.errors import ConfigurationError

INPUTS = "inputs:\n  rankings: {path: r}\n  judgments: {path: j}\n"


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def error(path: Path, *overrides: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load_config(path, overrides)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_base_is_under_profile_is_under_set(tmp_path: Path) -> None:
    write(tmp_path, "base.yaml", INPUTS + "warehouse: from base\nmax_rejected: 0.1\nmetrics: [recall@5]\n")
    profile = write(tmp_path, "profile.yaml", "extends: base.yaml\nwarehouse: from profile\nmax_rejected: 0.2\n")
    loaded = load_config(profile, ["max_rejected=0.3", "inputs.rankings.format=csv"])
    assert loaded.config.metrics == ("recall@5",)
    assert loaded.config.warehouse == str(tmp_path / "from profile")
    assert loaded.config.max_rejected == 0.3
    assert loaded.config.inputs.rankings is not None
    assert loaded.config.inputs.rankings.format == "csv"
    assert loaded.config.inputs.rankings.path == str(tmp_path / "r")
    assert loaded.origin("metrics") == str(tmp_path / "base.yaml")
    assert loaded.origin("warehouse") == str(profile)
    assert loaded.origin("max_rejected") == "--set max_rejected"
    assert loaded.origin("conventions.ties") == "default"


def test_environment_variables_are_expanded_where_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACE", "s3://bucket")
    text = INPUTS + "warehouse: ${PLACE}/${TEAM:-search}/$${x}\n"
    assert load_config(write(tmp_path, "c.yaml", text)).config.warehouse == "s3://bucket/search/${x}"
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
        ("metrics: ndgc@10", "unknown metric 'ndgc@10': did you mean 'ndcg@10'?"),
        ("metrics: []", "at metrics: it must have 1 or more entries"),
        ("metrics: {ndcg: 10}", "at metrics: a list is needed, such as [a, b]"),
        ("max_rejected: plenty", "wrong value 'plenty'"),
        ("max_rejected: plenty", "at max_rejected: a number is needed"),
        ("max_rejected: 2", "at max_rejected: it must be at most 1"),
        ("spark: 3", "at spark: a mapping of keys to values is needed"),
        ("warehouse: 3", "at warehouse: text is needed"),
        ("tracking: {enabled: maybe}", "at tracking.enabled: true or false is needed"),
        ("statistics: {replicates: 1.5}", "at statistics.replicates: a whole number is needed"),
        ("conventions: {ties: coin}", "'doc_id_desc', 'doc_id_asc' or 'error'"),
        ("segments: [device]", "segments need inputs.queries"),
        ("baseline: prod", "at baseline: did you mean 'compare.baseline'?"),
        ("order: score", "at order: did you mean 'conventions.order'?"),
        ("warehouse: [a", "cannot parse the YAML"),
        ("warehouse: a\nwarehouse: b", "duplicate key 'warehouse'"),
    ],
)
def test_a_mistake_is_named_with_its_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, "c.yaml", INPUTS + text + "\n")
    text = error(path)
    assert message in text
    assert str(path) in text
    assert "nput should" not in text and "valid " not in text, "a sentence of pydantic"


def test_several_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    text = error(
        write(tmp_path, "c.yaml", "inputs: {rankings: {path: r, format: xls}}\nmax_rejected: 2\nsegmants: 1\n")
    )
    assert "unknown format 'xls'" in text
    assert "at max_rejected" in text
    assert "did you mean 'segments'?" in text


def test_a_file_that_does_not_exist_is_named_with_its_neighbours(tmp_path: Path) -> None:
    write(tmp_path, "prod.yaml", INPUTS)
    assert "did you mean 'prod.yaml'?" in error(tmp_path / "prd.yaml")


def test_a_configuration_cannot_extend_itself(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", "extends: b.yaml\n")
    write(tmp_path, "b.yaml", "extends: a.yaml\n")
    assert "extends itself" in error(tmp_path / "a.yaml")


def test_a_profile_of_assay_is_extended_by_its_name(tmp_path: Path) -> None:
    path = write(tmp_path, "mine.yaml", "extends: trec.yaml\n" + INPUTS)
    assert load_config(path).config.conventions.order == "score_float32"
    path = write(tmp_path, "trec.yaml", "extends: trec.yaml\n" + INPUTS)
    assert load_config(path).config.conventions.order == "score_float32", "the profile, not the file itself"
    assert load_config(tmp_path / "mine.yaml").origins["conventions.order"].endswith("conf/trec.yaml")


def test_a_file_beside_a_configuration_goes_before_a_profile_of_the_same_name(tmp_path: Path) -> None:
    write(tmp_path, "trec.yaml", "max_rejected: 0.5\n")
    path = write(tmp_path, "mine.yaml", "extends: trec.yaml\n" + INPUTS)
    assert load_config(path).config.max_rejected == 0.5
    assert load_config(path).config.conventions.order == "rank"


def test_a_source_is_a_path_or_a_table(tmp_path: Path) -> None:
    assert "give either path or table" in error(write(tmp_path, "c.yaml", INPUTS), "inputs.rankings.table=t")
    assert "needs {date} in path" in error(write(tmp_path, "d.yaml", INPUTS), "inputs.rankings.days=7")


def test_a_segment_must_be_able_to_name_a_column(tmp_path: Path) -> None:
    path = write(tmp_path, "c.yaml", INPUTS)
    queries = "inputs.queries.path=q"
    assert "cannot name a column" in error(path, queries, "segments=['device type']")
    assert "has already" in error(path, queries, "segments=[weight]")
    assert load_config(path, [queries, "segments=[a, [a, b]]"]).config.segments == (("a",), ("a", "b"))


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        ("[all]", "the segment 'all' is a reserved name"),
        ("[ALL]", "the segment 'ALL' is a reserved name"),
        ("[[device, all]]", "the segment 'all' is a reserved name"),
        ("[run]", "the segment 'run' is a reserved name"),
        ("[dt]", "the segment 'dt' is a reserved name"),
        ("[draws]", "the segment 'draws' is a reserved name"),
        ("[ndcg_at_10]", "the segment 'ndcg_at_10' has the name of the column of the metric ndcg@10"),
        ("[NDCG_at_10]", "the segment 'NDCG_at_10' has the name of the column of the metric ndcg@10"),
        ("[recall_at_5__pool]", "has the name of the column of the metric recall@5"),
        ("[device, Device]", "'device' and 'Device' differ in case only"),
        ("[device, device]", "segments[1] is listed twice: device"),
        ("[[device, device]]", "segments[0] combines a column with itself: device / device"),
    ],
)
def test_a_segment_cannot_pass_for_something_else(tmp_path: Path, segments: str, message: str) -> None:
    path = write(tmp_path, "c.yaml", INPUTS + "metrics: [ndcg@10, recall@5]\n")
    assert message in error(path, "inputs.queries.path=q", f"segments={segments}")


def test_a_cluster_has_a_column_of_its_own(tmp_path: Path) -> None:
    path = write(tmp_path, "c.yaml", INPUTS + "metrics: [ndcg@10]\n")
    for name, message in (("ndcg_at_10", "the cluster 'ndcg_at_10' has the name"), ("run", "'run' is a reserved name")):
        assert message in error(path, "inputs.queries.path=q", f"statistics.cluster={name}")


def test_secrets_are_hidden_and_do_not_decide_the_run(tmp_path: Path) -> None:
    path = write(tmp_path, "c.yaml", INPUTS + 'spark: {settings: {fs.s3a.secret.key: hush, "spark.x": true}}\n')
    config = load_config(path).config
    assert config.dump_redacted()["spark"]["settings"] == {"fs.s3a.secret.key": "(hidden)", "spark.x": "true"}
    assert "hush" not in str(config.dump_settings())


def test_the_configuration_cannot_be_changed(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, "c.yaml", INPUTS)).config
    with pytest.raises(ValueError, match="frozen"):
        config.warehouse = "elsewhere"  # type: ignore[misc]
    assert isinstance(config, Config)


def test_a_wrong_metric_is_one_message(tmp_path: Path) -> None:
    message = error(write(tmp_path, "c.yaml", INPUTS), "metrics=ndgc@10")
    assert message.startswith("unknown metric 'ndgc@10': did you mean 'ndcg@10'? Known: ")
    assert message.endswith("(in --set metrics at metrics[0])") and "\n" not in message


@pytest.mark.parametrize("profile", sorted(p.name for p in Path("conf").glob("*.yaml")))
def test_every_shipped_profile_is_valid(profile: str) -> None:
    source = Path("conf") / profile
    assert load_config(
        source, ["inputs.rankings.path=r", "inputs.judgments.path=j", "inputs.queries.path=q"]
    ).config.metrics


def test_labels_from_behaviour_count_where_enough_is_judged() -> None:
    people = {"rankings": {"path": "r"}, "judgments": {"path": "j"}}
    log = {"rankings": {"path": "r"}, "impressions": {"path": "i"}, "interactions": {"path": "c"}}
    metrics = ["ndcg@10", "recall@20", "judged@10", "mrr"]

    def read(**changes: object) -> Config:
        return Config.model_validate({"metrics": metrics, "inputs": log} | changes)

    condense = {"unjudged": "cut_then_condense"}
    by_grades = read(conventions=condense)
    assert (read().min_judged, by_grades.min_judged, read(inputs=people).min_judged) == (None, 0.7, None)
    assert read(compare={"min_judged": 0.5}).min_judged == 0.5, "also with a posterior"
    assert read(compare={"min_judged": 0.5}, inputs=people).min_judged == 0.5
    assert read(compare={"min_judged": None}, conventions=condense).min_judged is None
    assert read(conventions={"unjudged": "zero"}).min_judged is None
    assert [spec.name for spec in by_grades.specs] == [*metrics, "judged@20"]
    assert [by_grades.judged_key(spec) for spec in by_grades.specs] == ["judged_at_10", "judged_at_20", *[None] * 3]
    assert [spec.name for spec in read(inputs=people).specs] == metrics


def test_with_a_posterior_dcg_is_computed_beside_ndcg() -> None:
    def list_names(metrics: list[str], **changes: object) -> list[str]:
        config = Config.model_validate({"metrics": metrics, "inputs": LOG} | changes)
        return [spec.name for spec in config.specs if spec.metric.name not in ("judged", "unseen")]

    assert list_names(["recall@5", "ndcg@10"]) == ["recall@5", "ndcg@10", "dcg@10"]
    assert list_names(["ndcg(gain=linear)@5"]) == ["ndcg(gain=linear)@5", "dcg(gain=linear)@5"]
    assert list_names(["dcg@10", "ndcg@10", "ndcg"]) == ["dcg@10", "ndcg@10", "ndcg", "dcg"], "each once"
    # Without a posterior, documents that nobody was shown gain nothing, so that sums of gains mislead.
    assert list_names(["ndcg@10"], conventions={"unjudged": "cut_then_condense"}) == ["ndcg@10"]
    assert list_names(["ndcg@10"], inputs=PEOPLE) == ["ndcg@10"]


LOG = {"rankings": {"path": "r"}, "impressions": {"path": "i"}, "interactions": {"path": "c"}}
PEOPLE = {"rankings": {"path": "r"}, "judgments": {"path": "j"}}
LISTS = {"rankings": {"path": "r"}}


@pytest.mark.parametrize(
    ("settings", "rule", "draws"),
    [
        ({"inputs": LOG}, "posterior", 30),
        ({"inputs": LOG | PEOPLE}, "posterior", 30),
        ({"inputs": LOG, "statistics": {"label_draws": 8}}, "posterior", 8),
        ({"inputs": LOG, "conventions": {"unjudged": "cut_then_condense"}}, "cut_then_condense", 0),
        ({"inputs": LOG, "labels": {"grade": {"objective": "cart"}}}, "cut_then_condense", 0),
        ({"inputs": LOG, "labels": {"grade": {"scale": "lift"}}}, "cut_then_condense", 0),
        ({"inputs": LISTS, "labels_of": "2026-11-01"}, "cut_then_condense", 0),
        ({"inputs": LOG, "labels_of": "2026-11-01"}, "cut_then_condense", 0),
        ({"inputs": PEOPLE}, "zero", 0),
        ({"inputs": PEOPLE, "statistics": {"label_draws": 5}}, "zero", 5),
    ],
)
def test_labels_that_a_run_makes_from_clicks_have_a_posterior(settings: Any, rule: str, draws: int) -> None:
    config = Config.model_validate(settings)
    assert (config.unjudged, config.posterior, config.label_draws) == (rule, rule == "posterior", draws)
    assert config.min_queries() == (2 if rule == "posterior" else 100)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"inputs": PEOPLE, "conventions": {"unjudged": "posterior"}}, "needs labels that the run makes from a log"),
        ({"inputs": LISTS, "labels_of": "x", "conventions": {"unjudged": "posterior"}}, "without labels_of"),
        (
            {"inputs": LOG, "labels": {"grade": {"scale": "lift"}}, "conventions": {"unjudged": "posterior"}},
            r"labels\.grade\.scale cuts",
        ),
        ({"inputs": LOG, "statistics": {"label_draws": 0}}, "a posterior is scored by its draws: set 2 or more"),
        (
            {"inputs": LOG, "conventions": {"unjudged": "zero"}, "statistics": {"label_draws": 5}},
            r"label_draws is 5, but labels from behaviour are drawn with conventions\.unjudged: posterior only ",
        ),
        (
            {"inputs": LISTS, "labels_of": "x", "statistics": {"label_draws": 5}},
            "posterior only, which needs labels that the run makes from a log",
        ),
    ],
)
def test_draws_without_a_posterior_are_a_configuration_error(settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Config.model_validate(settings)
