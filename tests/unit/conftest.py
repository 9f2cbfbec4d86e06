"""Unit tests start no JVM; property tests use the same examples on every machine."""

from hypothesis import settings

settings.register_profile("unit", deadline=None, max_examples=50, derandomize=True, database=None)
settings.load_profile("unit")
