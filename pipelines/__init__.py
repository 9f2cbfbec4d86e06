"""The pipelines, one package per stage: inputs, quality, labels, scoring, comparison, report, sharing.

`evaluate` and `label` are the two runs, on the skeleton in `run`; each reads as its flow. `plan` has what is known
before Spark starts. `warehouse` and `config` are used by all stages, `simulation` by none: it generates logs. Imports
go one way, in the order above.
"""
