"""All estimators, by name."""

from pipelines.propensity import all_pairs, em, rates, sessions, trust_bias  # importing them registers them
from pipelines.propensity.registry import ESTIMATORS, Estimator
from schemas.errors import ConfigurationError, did_you_mean

assert all((all_pairs, em, rates, sessions, trust_bias))


def estimator_named(name: str) -> Estimator:
    """The estimator of that name, or an error that lists them."""
    if name not in ESTIMATORS:
        raise ConfigurationError(
            f"unknown estimator {name!r}", where="labels.propensity.estimator", hint=did_you_mean(name, ESTIMATORS)
        )
    return ESTIMATORS[name]
