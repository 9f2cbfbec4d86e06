"""The configuration that is stored with a run: without secrets, and readable again."""

import pytest

from pipelines.config.load import load_run_config
from pipelines.config.model import Config
from pipelines.warehouse.runs import Manifest
from schemas.errors import InputError
from schemas.redact import redact

INPUTS = {"rankings": {"path": "r"}, "judgments": {"path": "j"}}


def build_manifest(config: dict[str, object]) -> Manifest:
    return Manifest(
        run="a-1",
        key="a",
        dt="2026-11-01",
        status="committed",
        committed_at="2026-11-02T00:00:00+00:00",
        seconds={},
        config=config,
        config_hash="c",
        code="v",
        spark="4",
        inputs={},
        systems=("s",),
        conventions={},
        tables={},
    )


def test_the_configuration_of_a_run_is_read_again_without_its_spark_settings() -> None:
    spark = {"master": "local[2]", "settings": {"fs.s3a.secret.key": "hush"}}
    config = Config.model_validate({"inputs": INPUTS, "metrics": ["ndcg@5"], "spark": spark})
    loaded = load_run_config(build_manifest(config.dump_redacted()))
    assert loaded.metrics == ("ndcg@5",)
    assert loaded.spark.master is None
    assert loaded.dump_settings() == config.dump_settings()


def test_a_configuration_of_another_version_is_explained() -> None:
    with pytest.raises(InputError, match=r"cannot read the configuration of run a-1.*evaluate the date again"):
        load_run_config(build_manifest({"inputs": INPUTS, "retired_key": 1}))


@pytest.mark.parametrize(
    ("value", "public"),
    [
        ({"fs.s3a.access.key": "k"}, {"fs.s3a.access.key": "(hidden)"}),
        ({"password": ""}, {"password": ""}),
        ({"inner": {"sasToken": "t"}}, {"inner": {"sasToken": "(hidden)"}}),
        (["https://me:pw@host/x"], ["https://(hidden)@host/x"]),
        ("abfs://box/x?sig=abc&v=1", "abfs://box/x?sig=(hidden)&v=1"),
        ("s3://bucket/a@b", "s3://bucket/a@b"),
        (7, 7),
    ],
)
def test_secrets_are_hidden_by_key_and_inside_uris(value: object, public: object) -> None:
    assert redact(value) == public
