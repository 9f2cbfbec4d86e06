"""Position bias: estimators that are declared one by one and read the same small evidence."""

from pipelines.propensity import all_pairs, em, rates, sessions, trust_bias  # registers the estimators
from pipelines.propensity.registry import ESTIMATORS, estimator_named

__all__ = ["ESTIMATORS", "estimator_named"]
del all_pairs, em, rates, sessions, trust_bias
