"""Write the generated pages of `docs/`: `python -m jobs.docs docs`."""

import sys
from pathlib import Path

from jobs.support.reference import PAGES


def write_pages(folder: Path) -> None:
    """Render every generated page into `folder`."""
    for name, render in PAGES.items():
        (folder / name).write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
