"""Every query of `docs/questions.md` runs in DuckDB and answers its question; `tests/spark` asks Spark."""

from pathlib import Path
from typing import Any

import duckdb

from pipelines.warehouse.views import render_duckdb_views
from tests.helpers.questions import DUCKDB, SECTIONS, check_answers, publish_two_days


def test_there_are_ten_questions() -> None:
    assert sorted(SECTIONS) == list(range(1, 11))
    assert [number for number, queries in SECTIONS.items() if len(queries) != 1] == [4]


def test_duckdb_answers_the_questions(tmp_path: Path) -> None:
    storage = publish_two_days(tmp_path)
    with duckdb.connect() as connection:
        connection.execute(render_duckdb_views(storage))

        def ask(number: int) -> list[dict[str, Any]]:
            answer = connection.execute(DUCKDB[number])
            names = [column[0] for column in answer.description]
            return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]

        check_answers(ask)
