"""Exported TREC files: trec_eval computes from them what the `trec` profile computed."""

import datetime as dt
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval
from pyspark.sql import SparkSession

from pipelines.config.load import load_config
from pipelines.evaluate import evaluate
from pipelines.scoring.export_trec import export_trec, name_files
from pipelines.warehouse.runs import Manifest
from pipelines.warehouse.storage import Storage
from pipelines.warehouse.tables import read_table
from schemas.errors import InputError

DAY = dt.date(2026, 11, 1)
PROFILES = Path(__file__).parents[3] / "conf"
# Our column beside the measure of trec_eval.
MEASURES = {
    "map": "map",
    "rprec": "Rprec",
    "bpref": "bpref",
    "mrr": "recip_rank",
    "ndcg_gain_linear": "ndcg",
    "ndcg_gain_linear_at_10": "ndcg_cut_10",
    "precision_at_5": "P_5",
    "recall_at_100": "recall_100",
    "map_at_1000": "map_cut_1000",
    "hit_at_1": "success_1",
}


def write_files(folder: Path) -> None:
    """Two systems with ties, documents that are equal as 32-bit floats, and odd but legal ids."""
    rng = np.random.default_rng(7)
    grades = [-1, 0, 0, 0, 1, 2]
    qrels = [f"{q} 0 d{d:02} {rng.choice(grades)}" for q in range(1, 9) for d in range(0, 30, 2)]
    runs = folder / "runs"
    runs.mkdir(parents=True)
    (folder / "qrels.txt").write_text("\n".join([*qrels, "1 0 d#1 2", "1 0 50%off 1"]) + "\n", encoding="utf-8")
    for system in ("first", "second"):
        lines = [f"# the run {system}"]
        for q in range(1, 9):
            docs = [*rng.permutation(30)[:20]]
            scores = np.round(rng.random(20) * 5) + rng.integers(0, 2, 20) * 1e-9
            lines += [f"{q} Q0 d{d:02} ? {score:.12f} {system} ignored" for d, score in zip(docs, scores, strict=True)]
            lines += [f"{q} Q0 d#1 ? 2.5 {system}", f"{q} Q0 50%off ? 2.5 {system}"]
        (runs / f"{system}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def evaluate_files(spark: SparkSession, folder: Path, profile: str) -> Manifest:
    text = (
        f"extends: {PROFILES / profile}\nwarehouse: {folder / 'warehouse'}\nchecks: off\nreport: false\n"
        f"inputs:\n  rankings: {{path: {folder / 'runs'}, format: trec_run}}\n"
        f"  judgments: {{path: {folder / 'qrels.txt'}, format: trec_qrels}}\n"
    )
    (folder / "config.yaml").write_text(text, encoding="utf-8")
    return evaluate(spark, load_config(folder / "config.yaml").config, DAY).manifest


def parse(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("profile", ["trec.yaml", "trec10.yaml"])
def test_trec_eval_agrees_with_the_run_that_was_exported(spark: SparkSession, tmp_path: Path, profile: str) -> None:
    write_files(tmp_path)
    manifest = evaluate_files(spark, tmp_path, profile)
    files = export_trec(spark, Storage(str(tmp_path / "warehouse")), manifest, tmp_path / "exported")
    assert files.changed == ()
    qrels: dict[str, dict[str, int]] = {}
    for query, _, doc, grade in parse(files.qrels):
        qrels.setdefault(query, {})[doc] = int(grade)
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, set(MEASURES.values()) | pytrec_eval.supported_measures)
    published = read_table(spark, str(tmp_path / "warehouse"), "query_metrics").toPandas()
    compared = 0
    for system, path in files.runs.items():
        run: dict[str, dict[str, float]] = {}
        for query, _, doc, _, score, tag in parse(path):
            assert tag == system
            run.setdefault(query, {})[doc] = float(score)
        expected = evaluator.evaluate(run)
        for _, row in published[published["system"] == system].iterrows():
            for column, measure in MEASURES.items():
                assert row[column] == pytest.approx(expected[row["query_id"]][measure], abs=1e-6), (column, measure)
                compared += 1
    assert compared == 2 * 8 * len(MEASURES)


def test_scores_that_are_equal_as_32_bit_floats_are_ties_up_to_trec_eval_9(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "qrels.txt").write_text("1 0 a 1\n1 0 b 0\n", encoding="utf-8")
    (tmp_path / "runs" / "s.txt").write_text("1 Q0 a 1 5.000000001 s\n1 Q0 b 2 5 s\n", encoding="utf-8")
    ranks = {}
    for profile in ("trec.yaml", "trec10.yaml"):
        manifest = evaluate_files(spark, tmp_path, profile)
        metrics = read_table(spark, str(tmp_path / "warehouse"), "query_metrics", run=manifest.run)
        ranks[profile] = [row["mrr"] for row in metrics.collect()]
    assert ranks == {"trec.yaml": [0.5], "trec10.yaml": [1.0]}


def test_ids_are_encoded_and_fractions_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("system,query_id,doc_id,rank\n../a b,red shoes,#1,1\n", encoding="utf-8")
    (tmp_path / "judgments.csv").write_text("query_id,doc_id,grade\nred shoes,#1,1\n", encoding="utf-8")
    text = (
        f"warehouse: {tmp_path / 'warehouse'}\nchecks: off\nreport: false\nmetrics: [mrr]\ninputs:\n"
        f"  rankings: {{path: {tmp_path / 'runs.csv'}, format: csv}}\n"
        f"  judgments: {{path: {tmp_path / 'judgments.csv'}, format: csv}}\n"
    )
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    manifest = evaluate(spark, load_config(tmp_path / "config.yaml").config, DAY).manifest
    storage = Storage(str(tmp_path / "warehouse"))
    files = export_trec(spark, storage, manifest, tmp_path / "exported")
    assert files.runs == {"../a b": tmp_path / "exported" / "_a_b.run"}
    assert parse(files.runs["../a b"]) == [["red%20shoes", "Q0", "%231", "1", "-1", "../a%20b"]]
    assert parse(files.qrels) == [["red%20shoes", "0", "%231", "1"]]
    (tmp_path / "judgments.csv").write_text("query_id,doc_id,grade\nred shoes,#1,0.5\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"the grade 0\.5 of document '#1' for query 'red shoes' is not a whole"):
        export_trec(spark, storage, manifest, tmp_path / "exported")


def test_systems_get_files_of_their_own() -> None:
    assert name_files(["a/b", "a b", "A_b", "..", "qrels"]) == {
        "a/b": "a_b.run",
        "a b": "a_b-2.run",
        "A_b": "A_b-3.run",
        "..": "system.run",
        "qrels": "qrels.run",
    }
