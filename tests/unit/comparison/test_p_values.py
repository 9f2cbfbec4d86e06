"""Which p-values are adjusted together, and which differences are no test."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pipelines.comparison.compare import PValueRules, adjust_p_values, build_p_value_rules
from pipelines.config.model import Config
from udfs.statistics.correct import CORRECTIONS

FAMILY = frozenset({"ndcg_at_10"})


def adjust(rules: PValueRules, *rows: tuple[str, str, str, float]) -> list[dict[str, Any]]:
    names = ("baseline", "candidate", "metric", "p_value")
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    columns |= {"p_randomisation": columns["p_value"], "p_bootstrap": columns["p_value"]}
    (batch,) = adjust_p_values(rules)([pa.RecordBatch.from_pydict(columns)])
    rows_out: list[dict[str, Any]] = batch.to_pylist()
    return rows_out


def test_the_tests_of_all_pairs_are_one_family_where_all_pairs_are_compared() -> None:
    p = [0.01, 0.02, 0.04, 0.9, 0.03, 0.5]
    rows = [
        (pair[0], pair[1], "ndcg_at_10", value)
        for pair, value in zip(["ab", "ac", "ad", "bc", "bd", "cd"], p, strict=True)
    ]
    alone = adjust(PValueRules(FAMILY, "holm", alpha=0.05), *rows)
    assert [row["p_adjusted"] for row in alone] == p  # one test a pair
    together = adjust(PValueRules(FAMILY, "holm", alpha=0.05, across_pairs=True), *rows)
    assert [row["p_adjusted"] for row in together] == pytest.approx([0.06, 0.1, 0.12, 1.0, 0.12, 1.0])
    assert not any(row["significant"] for row in together)


def test_a_system_is_not_tested_for_its_likeness_to_itself() -> None:
    rules = PValueRules(FAMILY, "holm", alpha=0.05, similarities=frozenset({"rbo"}), earlier="old")
    rows = adjust(rules, ("old", "new", "rbo", 1e-9), ("new", "next", "rbo", 0.2), ("old", "new", "ndcg_at_10", 0.3))
    for name in ("p_value", "p_randomisation", "p_bootstrap"):
        assert [row[name] for row in rows] == [None, 0.2, 0.3]
    assert [row["p_adjusted"] for row in rows] == [None, None, 0.3]


@pytest.mark.parametrize(("pairs", "across"), [("baseline", False), ("all", True)])
def test_the_rules_follow_the_configuration(pairs: str, across: bool) -> None:
    config = Config.model_validate(
        {
            "inputs": {"rankings": {"path": "r"}, "judgments": {"path": "j"}},
            "metrics": ["ndcg@10", "rbo@5"],
            "compare": {"baseline": "old", "pairs": pairs, "correction": "bh"},
            "statistics": {"confidence": 0.9},
        }
    )
    rules = build_p_value_rules(config)
    assert (rules.across_pairs, rules.earlier, rules.correction) == (across, "old", "bh")
    assert rules.family == FAMILY
    assert rules.similarities == frozenset({"rbo_at_5"})
    assert rules.alpha == pytest.approx(0.1)
    assert rules.correction in CORRECTIONS
