"""The page of the worlds: bounds that are missed are listed, with what an exact interval would do."""

import pytest

from benchmarks.world_logs import CANDIDATES
from benchmarks.world_page import build_page, find_nominal_share


def test_a_candidate_at_the_limit_of_the_gate_passes_in_5_percent() -> None:
    assert find_nominal_share(-0.05, 0.1) == pytest.approx(0.05)
    # (−.057 + .05) / (.18 / 3.92) − 1.645 = −1.797
    assert find_nominal_share(-0.057, 0.18) == pytest.approx(0.0361, abs=5e-4)


def test_only_figures_above_their_bounds_are_listed_as_missed() -> None:
    def build_rows(world: str, rmse: float, passes: float) -> list[dict[str, object]]:
        place = {"world": world, "pages": 10_000, "seeds": 20, "true": -0.06, "RMSE": rmse, "covers": 1.0}
        shares = {"width": 0.2, "called better": 0.0, "called worse": 0.0, "passes gate": passes}
        return [place | shares | {"candidate": name} for name in ("better", "equal", "worse")]

    rows = [*build_rows("plain", 0.0404, 0.0), *build_rows("unequal", 0.041, 0.05)]
    rows += [*build_rows("production_learned", 0.07, 0.02), *build_rows("candidate_learned", 0.2, 0.5)]
    page = build_page({"posterior": rows, "cut_then_condense": rows})
    missed = page.partition("## Bounds that are missed")[2].partition("## What was tried")[0]
    lines = [line for line in missed.splitlines() if line.startswith("| 10,000")]
    assert lines == [
        *(f"| 10,000 | queries of unequal difficulty | {name} | .040 | .041 | 1.00 | .20 |" for name in CANDIDATES),
        "| 10,000 | queries of unequal difficulty | -.060 | .20 | .050 | .033 |",
    ]
