"""Quality: check the inputs of a run before they are used, and its outputs before they are committed.

In: the conformed inputs, the tables written by the run, and the manifests of earlier runs. Out: `validation_results`,
Data Docs, and figures in the manifest. Entry class: `inspect.Inspection`.

Files in reading order: `inspect` (the order of the checks), `registry` and `checks/` (one file per declared check),
`settings`, `row_figures`, `reference_figures`, `output_figures`, `day_figures` and `past_figures` (what the checks
read), `expectations/` (the contracts as suites of Great Expectations), `results`, `describe` (the page in the docs).
"""
