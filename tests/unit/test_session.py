"""What Java is started with: a collector of ours, or the one that somebody chose, and never two."""

import pytest

from jobs.session import COLLECTOR, FOR_JAVA, java_options


@pytest.fixture(autouse=True)
def _nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FOR_JAVA:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("settings", [{}, {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -Duse=GC"}])
def test_java_collects_for_throughput_where_nobody_has_chosen(settings: dict[str, str]) -> None:
    assert COLLECTOR in java_options(settings).split()


def test_a_collector_of_the_configuration_stays_the_only_one() -> None:
    options = java_options({"spark.driver.extraJavaOptions": "-Xss4m -XX:+UseG1GC"})
    assert COLLECTOR not in options
    assert "-XX:MaxInlineLevel=25" in options


@pytest.mark.parametrize("name", FOR_JAVA)
def test_a_collector_of_the_environment_stays_the_only_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "-XX:+UseZGC")
    assert COLLECTOR not in java_options({})
