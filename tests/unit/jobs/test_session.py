"""The options for Java: our garbage collector or the user's, what suits little data, and an archive of classes."""

import io
import sysconfig
from pathlib import Path

import pytest

from jobs.support import java, prepare
from jobs.support.daemon import drop_archives, print_exception
from jobs.support.java import build_archive_options, forward_lines, select_launch_settings, write_archive
from jobs.support.session import (
    COLLECTOR,
    JAVA_VARIABLES,
    LARGE_JAVA,
    SMALL_COLLECTOR,
    SMALL_JAVA,
    TINY_BYTES,
    build_java_options,
    build_local_settings,
)
from pipelines.plan import SMALL_BYTES
from schemas.errors import AssayError


@pytest.fixture(autouse=True)
def _unset_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in JAVA_VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("settings", [{}, {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -Duse=GC"}])
def test_java_gets_the_parallel_collector_by_default(settings: dict[str, str]) -> None:
    assert COLLECTOR in build_java_options(settings).split()


def test_a_collector_in_the_configuration_takes_precedence() -> None:
    options = build_java_options({"spark.driver.extraJavaOptions": "-Xss4m -XX:+UseG1GC"})
    assert COLLECTOR not in options
    assert "-XX:MaxInlineLevel=25" in options


@pytest.mark.parametrize("name", JAVA_VARIABLES)
def test_a_collector_in_the_environment_takes_precedence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "-XX:+UseZGC")
    assert COLLECTOR not in build_java_options({})


@pytest.mark.parametrize(
    ("size", "partitions", "collector", "compilers"),
    [
        (0, "1", SMALL_COLLECTOR, SMALL_JAVA),
        (TINY_BYTES, "2", SMALL_COLLECTOR, SMALL_JAVA),
        (SMALL_BYTES, "16", COLLECTOR, LARGE_JAVA),
        (None, "16", COLLECTOR, LARGE_JAVA),
    ],
)
def test_tasks_and_compilers_follow_the_size_of_the_data(
    size: int | None, partitions: str, collector: str, compilers: tuple[str, ...]
) -> None:
    settings = build_local_settings({}, size)
    java = settings["spark.driver.defaultJavaOptions"].split()
    assert settings["spark.sql.shuffle.partitions"] == partitions
    assert [option for option in java if option.endswith("GC")] == [collector]
    assert set(java) & {*SMALL_JAVA, *LARGE_JAVA} == set(compilers)


def test_a_log_with_kept_days_gets_one_compiler_tier_and_the_plan_of_its_window() -> None:
    settings = build_local_settings({}, SMALL_BYTES, SMALL_BYTES - 1)
    java = settings["spark.driver.defaultJavaOptions"].split()
    assert set(SMALL_JAVA) <= set(java) and COLLECTOR in java
    assert settings["spark.sql.shuffle.partitions"] == "16" and "spark.sql.adaptive.enabled" not in settings
    all_new = build_local_settings({}, SMALL_BYTES, SMALL_BYTES)["spark.driver.defaultJavaOptions"].split()
    assert not set(SMALL_JAVA) & set(all_new)


def test_the_archive_of_classes_is_used_where_there_is_one(tmp_path: Path) -> None:
    archive = tmp_path / "spark.jsa"
    assert build_archive_options(archive) == ()
    archive.touch()
    assert build_archive_options(archive)[:2] == (f"-XX:SharedArchiveFile={archive}", "-Xshare:auto")


def test_secrets_are_not_on_the_command_line_of_java() -> None:
    options = "-Djavax.net.ssl.trustStorePassword=hunter2-Xyz"  # Java reads them from there only
    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": options,
        "spark.hadoop.fs.s3a.secret.key": "hunter2-Xyz",
        "spark.authenticate.secret": "hunter2-Xyz",
        "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:mysql://host/db?user=me&password=hunter2-Xyz",
        "spark.sql.catalog.lake.uri": "https://me:hunter2-Xyz@host.example/",
    }
    assert select_launch_settings(settings) == {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": options,
    }


def test_what_java_prints_at_every_start_is_dropped_and_the_rest_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    noise = b"WARNING: Using incubator modules: jdk.incubator.vector\nPicked up JAVA_TOOL_OPTIONS: -Xss4m\n"
    forward_lines(io.BytesIO(noise + b"out of \xff memory\n"))
    assert capsys.readouterr().err == "out of \ufffd memory\n"


def test_without_java_no_archive_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stops: list[None] = []
    monkeypatch.setattr(java, "stop_java", lambda: stops.append(None))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", "")
    with pytest.raises(AssayError, match="Spark needs Java 17"):
        write_archive(tmp_path / "share" / "spark.jsa")
    assert list((tmp_path / "share").iterdir()) == []
    assert stops == []  # a JVM that others use goes on


def test_workers_import_pyspark_as_compiled_modules_and_not_from_its_archives() -> None:
    packages = sysconfig.get_path("purelib")
    archives = [f"{packages}/pyspark/python/lib/{name}.zip" for name in ("pyspark", "py4j-0.10.9.9-src")]
    kept = ["", "/code", "/elsewhere/spark/python/lib/pyspark.zip", packages]
    assert drop_archives([*archives, *kept], packages) == kept


def test_set_up_compiles_our_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "udfs").mkdir()
    (tmp_path / "udfs" / "one.py").write_text("x = 1\n", encoding="utf-8")
    monkeypatch.setattr(prepare, "ROOT", tmp_path)
    monkeypatch.setattr(prepare, "SHIPPED", ("udfs",))
    prepare.compile_packages()
    assert list((tmp_path / "udfs").rglob("one*.pyc"))


def test_a_worker_whose_connection_is_closed_prints_no_stack_trace(capsys: pytest.CaptureFixture[str]) -> None:
    for error in (BrokenPipeError("closed"), ValueError("odd")):
        try:
            raise error
        except (BrokenPipeError, ValueError):
            print_exception()
    printed = capsys.readouterr().err
    assert "ValueError: odd" in printed and "BrokenPipeError" not in printed
