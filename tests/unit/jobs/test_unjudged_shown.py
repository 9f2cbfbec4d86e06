"""What a run prints about unjudged documents."""

from pathlib import Path
from typing import Any

import pytest

from jobs.support.conclusions import show_conclusions
from tests.helpers.published_runs import publish


def comparison(metric: str, **values: Any) -> dict[str, Any]:
    pair = {"baseline": "old", "candidate": "new", "segment": "all", "value": "all", "metric": metric}
    numbers = {"delta": 0.02, "delta_low": 0.01, "delta_high": 0.03, "relative": 0.04, "p_value": 0.001}
    none = dict.fromkeys(("p_randomisation", "p_bootstrap"))
    counts = {"wins": 60, "ties": 20, "losses": 40, "queries": 120, "unjudged": 30}
    return pair | numbers | none | counts | {"p_adjusted": None, "significant": None, "detectable_delta": 0.01} | values


def test_every_way_to_count_the_unjudged_stands_beside_the_rule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, manifest = publish(tmp_path)
    ways = [
        comparison("ndcg_at_10", unjudged="cut_then_condense", gate="pass"),
        comparison("ndcg_at_10", unjudged="zero", delta=-0.01, gate="fail", queries=150),
        comparison("ndcg_at_10", unjudged="condense", delta=0.001, p_value=0.3, gate="undecidable", queries=150),
    ]
    # judged@10 is computed where labels come from behaviour, whether it is configured or not.
    show_conclusions(manifest, [comparison("ndcg_at_10"), comparison("judged_at_10")], ways, ["ndcg@10"])
    output = capsys.readouterr().out
    assert "judged" not in output.split("with unjudged documents")[0]
    cells = ("+0.0200* ✓  ", "-0.0100* ✗ n=150", "+0.0010 ? n=150")
    assert all(cell in output for cell in cells)
