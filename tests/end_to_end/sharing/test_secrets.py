"""Secrets of thirty shapes, planted in the configuration of one run, are in nothing that the run leaves behind."""

import re
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import yaml

from tests.end_to_end.conftest import WarmProcess

DEAD = "127.0.0.1:9"  # nothing listens there


class Planter:
    """Makes a new secret for every place, and remembers all."""

    def __init__(self) -> None:
        self.secrets: list[str] = []
        self.of_java = ""  # which Java takes from its command line only
        self._numbers = count()

    def __call__(self, shape: str = "{}") -> str:
        self.secrets.append(f"pl4nted-{next(self._numbers):02d}x")
        return shape.format(self.secrets[-1])


def build_config(demo: Path, folder: Path, plant: Planter) -> dict[str, Any]:
    names = (
        "fs.s3a.secret.key", "fs.s3a.session.token", "db.password", "db.passwd", "db.pwd", "db.pass", "apikey",
        "api_key", "x-api-key", "private_key", "accessKey", "fs.azure.account.key.x", "sas", "clientSecret",
        "credentials", "passphrase", "sslKeystorePassword", "Authorization", "signature",
    )  # fmt: skip
    values = (
        "https://me:{}@host/x", "https://{}@host", "https://me:a/{}@host", "https://me:a@{}@host",
        "https://me:a&{}@host", "https://host?access_token={}", "https://host?v=1&api_key={}",
        "https://host?X-Amz-Signature={}&v=1", "https://host?sig={}", "jdbc:x://host;user=me;password={};a=b",
        "jdbc:x://host?pwd=a&{}", "AccountName=a;AccountKey={}==", "Bearer {}",
    )  # fmt: skip
    settings = {f"spark.planted.{name}": plant() for name in names}
    settings |= {f"spark.planted.place{number}": plant(value) for number, value in enumerate(values)}
    java = plant("-XX:TieredStopAtLevel=1 -Djavax.net.ssl.trustStorePassword={}")
    plant.of_java = plant.secrets[-1]
    rankings = {
        "path": f"{demo}/data/rankings/dt={{date}}",
        "options": {"password": plant(), "url": plant("x://a:{}@b")},
    }
    return {
        "extends": str(demo / "demo.yaml"),
        "warehouse": str(folder / "w"),
        "checks": "full",
        "inputs": {"rankings": rankings},
        "tracking": {"enabled": True, "uri": plant(f"http://me:{{}}@{DEAD}"), "seconds": 20},
        "prometheus": {"pushgateway": plant(f"http://me:{{}}@{DEAD}")},
        "spark": {"settings": settings | {"spark.driver.extraJavaOptions": java}},
    }


@contextmanager
def watch_processes(mark: str) -> Iterator[set[str]]:
    """Yield the words with a mark that are on the command line of any process meanwhile."""
    seen: set[str] = set()
    closed = threading.Event()

    def watch() -> None:
        while not closed.wait(0.5):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):
                    seen.update(re.findall(rf"{mark}\w+", path.read_text(errors="replace")))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        closed.set()
        thread.join()


def list_leaks(secrets: list[str], contents: dict[str, bytes]) -> Iterator[str]:
    for name, content in contents.items():
        yield from (f"{name}: {secret}" for secret in secrets if secret.encode() in content)


def test_no_secret_is_printed_or_stored(demo: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    plant = Planter()
    config = tmp_path / "planted.yaml"
    config.write_text(yaml.safe_dump(build_config(demo, tmp_path, plant)), encoding="utf-8")
    assert len(plant.secrets) >= 30
    at = ("--warehouse", tmp_path / "w")
    words = ("--config", config)
    broken = (*words, "--date", "2026-11-01", "--set", f"metrics={plant('{{password: {}}}')}")
    # In a process of its own, because one of the secrets is an option of Java.
    with closing(WarmProcess(tmp_path, environment)) as process, watch_processes("pl4nted-") as seen:
        results = [
            process.run(("assay", *command))
            for command in (
                ("evaluate", *words, "--date", "2026-11-01", "--debug"),
                ("config", *words),
                ("config", *words, "--output", "json"),
                ("track", "--pending", *words),
                ("track", "--run", "2026-11-01", *at),  # to the store inside the warehouse
                ("runs", *at, "--output", "json"),
                ("evaluate", *broken),
            )
        ]
    assert seen <= {plant.of_java}
    assert [result.returncode for result in results] == [0, 0, 0, 7, 0, 0, 2], [r.stderr[-500:] for r in results]
    assert "mlflow could not be reached" in results[0].stderr
    assert "its prometheus failed" in results[0].stderr
    contents = {f"output {n}": (r.stdout + r.stderr).encode() for n, r in enumerate(results)}
    contents |= {str(path): path.read_bytes() for path in (tmp_path / "w").rglob("*") if path.is_file()}
    for kind in ("/runs/", "/reports/", "/mlflow/mlflow.db", "/tracking/"):
        assert any(kind in name for name in contents), kind
    assert list(list_leaks(plant.secrets, contents)) == []
