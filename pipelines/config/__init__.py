"""The configuration: one frozen model that every command loads.

Each room declares its own section in its `settings` module; this room composes them, checks that they fit together,
and loads them from YAML.

In: YAML files, `--set key=value`, environment variables. Out: `Config`. Entry: `load_config` in `load`.

Read in this order: `model` (`Config`), `requirements` (what sections require of each other), `spark` (the session),
`parse` (YAML, bounded), `load` (files, overrides, error messages).
"""
