"""Crawlers are told from browsers by the maintained list."""

import pandas as pd

from pipelines.simulation.pages import BROWSERS, CRAWLERS
from udfs.spark.crawlers import _match, is_crawler


def test_crawlers_are_on_the_list_and_browsers_are_not() -> None:
    assert all(is_crawler(agent) for agent in CRAWLERS)
    assert not any(is_crawler(agent) for agent in BROWSERS)


def test_a_column_of_agents_is_matched_row_by_row() -> None:
    agents = pd.Series([BROWSERS[0], CRAWLERS[0], None, CRAWLERS[0]], index=[7, 8, 9, 10])
    assert _match(agents).tolist() == [False, True, False, True]
