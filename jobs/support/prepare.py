"""What `make setup` prepares once, so that runs start faster: compiled modules, Java classes, an empty MLflow store.

    python -m jobs.support.prepare

Where one of them cannot be written, runs do without it.
"""

from __future__ import annotations

import compileall
import sys
from collections.abc import Callable

from jobs.support.java import write_archive
from jobs.support.session import ROOT, SHIPPED
from pipelines.sharing.tracking.backends.mlflow import write_empty_store


def compile_packages() -> None:
    """Compile our modules, which Python does not do by itself where PYTHONDONTWRITEBYTECODE is set."""
    for package in SHIPPED:
        if not compileall.compile_dir(ROOT / package, quiet=2):
            raise OSError(f"{ROOT / package} cannot be written")


STEPS: dict[str, Callable[[], None]] = {
    "Each command will compile our modules": compile_packages,
    "Spark will start without an archive of its classes": write_archive,
    "MLflow will create the tables of each new store itself": write_empty_store,
}


def main() -> None:
    """Write each of them; report what is not possible."""
    for consequence, step in STEPS.items():
        try:
            step()
        except Exception as error:
            print(f"{consequence}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
