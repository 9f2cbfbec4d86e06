"""Write the generated pages of `docs/`: `python -m jobs.docs docs`."""

import sys
from pathlib import Path

from pipelines.reference import PAGES


def write(folder: Path) -> None:
    """Render every page into `folder`."""
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
