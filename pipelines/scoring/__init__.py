"""Score ranked lists against labels.

Tables in: rankings, judgments or labels, queries, documents, decisions. Tables out: `query_metrics`, and the rows of
whole systems in `segment_metrics`. Entry: `prepare.build_scorer`, whose `Scorer` maps labels to `query_metrics`.
Labels with evidence and a prior are scored on draws; all draws are then in the column `draws`, which is not published.

Files in reading order: `require` (what inputs and scored lists must be), `prepare` (from the inputs of a run to a
scorer), `score` (the metrics of lists), `from_files` (the same from files that workers read), `place` (documents at
their scored ranks), `systems` (the metrics of whole systems), `read_again` (inputs of a published run), `one_query` and
`explain` (how the numbers of one query come about), `export_trec` (lists and labels as files for trec_eval).
"""
