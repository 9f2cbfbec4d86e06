"""The metrics of the benchmark as one SQL statement in DuckDB, alone in a module that imports nothing else.

python -m benchmarks.duckdb_scores FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import duckdb

CUTS = (5, 10, 20)


def score_with_duckdb(folder: Path, cuts: Sequence[int], *, counts: bool = False) -> float:
    """One SQL statement: join, windows for the ideal and for average precision, then sums.

    With `counts` it also computes what else Assay publishes of a list: the numbers of judged, tied and duplicate
    documents and of labels, and the divisors of ratios.
    """
    gain, each = "(power(2, grade) - 1)", "sum(CASE WHEN {place} <= {k} THEN {what} ELSE 0 END)"
    ideal = [each.format(place="place", k=k, what=f"{gain} / log2(place + 1)") + f" AS idcg_{k}" for k in cuts]
    sums = [each.format(place="rank", k=k, what=f"{gain} / log2(rank + 1)") + f" AS dcg_{k}" for k in cuts]
    sums += [each.format(place="rank", k=k, what="1") + f" AS hits_{k}" for k in cuts]
    sums += [each.format(place="rank", k=k, what="hit * 1.0 / rank") + f" AS ap_{k}" for k in cuts]
    final = [f"coalesce(dcg_{k}, 0) / idcg_{k} AS ndcg_at_{k}" for k in cuts]
    final += [f"coalesce(hits_{k}, 0) / {k} AS precision_at_{k}" for k in cuts]
    final += [f"coalesce(hits_{k}, 0) / relevant AS recall_at_{k}" for k in cuts]
    final += [f"coalesce(ap_{k}, 0) / relevant AS map_at_{k}" for k in cuts]
    final += ["coalesce(1.0 / best, 0) AS mrr", "coalesce(at_relevant, 0) / relevant AS rprec"]
    of_list, beside = "count(*) AS retrieved", "retrieved"
    if counts:
        of_list += ", count(*) - count(DISTINCT doc_id) AS duplicates, count(*) - count(DISTINCT rank) AS tied"
        beside = "weight, retrieved, duplicates, tied, labelled, relevant, coalesce(judged, 0) AS judged"
        beside += "".join(f", idcg_{k}, {k}.0 AS precision_{k}_of, relevant AS recall_{k}_of" for k in cuts)
    sql = f"""
        WITH ideal AS (
            SELECT query_id, count(*) AS labelled, count(*) FILTER (grade > 0) AS relevant, {", ".join(ideal)} FROM (
                SELECT query_id, grade, row_number() OVER (PARTITION BY query_id ORDER BY grade DESC) AS place
                FROM '{folder}/labels/*.parquet')
            GROUP BY query_id),
        matched AS {"MATERIALIZED" if counts else "NOT MATERIALIZED"} (
            SELECT system, query_id, rank, grade
            FROM '{folder}/rankings/*.parquet' JOIN '{folder}/labels/*.parquet' USING (query_id, doc_id)),
        hits AS (
            SELECT *, row_number() OVER (PARTITION BY system, query_id ORDER BY rank) AS hit
            FROM matched WHERE grade > 0),
        sums AS (
            SELECT system, query_id, min(rank) AS best, count(*) FILTER (rank <= relevant) AS at_relevant,
                   {", ".join(sums)}
            FROM hits JOIN ideal USING (query_id) GROUP BY system, query_id),
        seen AS (SELECT system, query_id, count(*) AS judged FROM matched GROUP BY ALL),
        lists AS (SELECT system, query_id, {of_list} FROM '{folder}/rankings/*.parquet' GROUP BY system, query_id)
        SELECT system, query_id, segment_of, {beside}, {", ".join(final)}
        FROM lists LEFT JOIN sums USING (system, query_id) JOIN ideal USING (query_id)
             {"LEFT JOIN seen USING (system, query_id)" if counts else ""}
             JOIN '{folder}/queries/*.parquet' USING (query_id)
        WHERE relevant > 0"""
    target = folder / "duckdb.parquet"
    with duckdb.connect(config={"threads": 2}) as duck:
        duck.execute(f"COPY ({sql}) TO '{target}'")
        means = ", ".join(f"avg({column.rpartition(' AS ')[2]})" for column in final)
        sets = "GROUPING SETS ((system), (system, segment_of))"
        duck.execute(f"SELECT system, segment_of, {means} FROM '{target}' GROUP BY {sets}").fetchall()
        answer = duck.execute(f"SELECT avg(ndcg_at_10) FROM '{target}'").fetchone()
    return float(answer[0]) if answer else float("nan")


if __name__ == "__main__":
    print(score_with_duckdb(Path(sys.argv[1]), CUTS, counts=True))
