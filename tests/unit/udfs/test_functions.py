"""Metrics as columns: a wrong metric is reported when the column is built, before a JVM is asked."""

import pytest

from schemas.errors import ConfigurationError
from udfs.functions import compute_metric


@pytest.mark.parametrize(("metric", "message"), [("err@10", "gmax"), ("ndcg@0", "@0"), ("ndgc@10", "ndcg")])
def test_a_wrong_metric_is_reported_at_plan_time(metric: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        compute_metric(metric, "ranked", "labels")
