"""What `make setup` prepares once, so that runs start faster: an archive of Java classes and an empty MLflow store.

    python -m jobs.support.prepare

Where one of them cannot be written, runs do without it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from jobs.support.java import write_archive
from pipelines.sharing.tracking.backends.mlflow import write_empty_store

STEPS: dict[str, Callable[[], None]] = {
    "Spark will start without an archive of its classes": write_archive,
    "MLflow will create the tables of each new store itself": write_empty_store,
}


def main() -> None:
    """Write both; report what is not possible."""
    for consequence, step in STEPS.items():
        try:
            step()
        except Exception as error:
            print(f"{consequence}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
