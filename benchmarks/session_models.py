"""Bias of session models in closed form on pages drawn from their own model.

python -m benchmarks.session_models
"""

import numpy as np

from tests.helpers.click_pages import PAIRS, Model, draw_pages
from tests.unit.labels.test_session_models import rate_pairs

PAGES = 1_000_000
PARAMETERS: dict[Model, float] = {"sdbn": 0.4, "dcm": 0.6}  # satisfaction; continuation


def main() -> None:
    """Print the mean of estimated over true attractiveness by model, length of the page and attractiveness."""
    for model, parameter in PARAMETERS.items():
        for low, high in ((0.05, 0.15), (0.1, 0.3), (0.4, 0.8)):
            for positions in (5, 10):
                attraction = np.random.default_rng(1).uniform(low, high, PAIRS)
                values = np.full(positions if model == "dcm" else PAIRS, parameter)
                pages = draw_pages(model, attraction, values, pages=PAGES, positions=positions)
                means = {name: np.nanmean(rate_pairs(name, pages) / attraction) for name in (model, "first_click")}
                figures = ", ".join(f"{name} {mean:.2f}" for name, mean in means.items())
                print(f"{model}, {positions} results, attractiveness {low}–{high}: {figures}", flush=True)


if __name__ == "__main__":
    main()
