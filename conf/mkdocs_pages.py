"""Pages of the documentation site that are files of the project's folder: the home page is README.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}


def on_files(files: Files, config: Any) -> Files:
    """Add the pages, with links as they are from inside docs/."""
    for source, target in PAGES.items():
        content = (ROOT / source).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, target, content=_link_pages(content)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links out of docs/ lead to those pages."""
    return _link_pages(markdown)


def _link_pages(markdown: str) -> str:
    names = "|".join(re.escape(name) for name in PAGES)
    return re.sub(rf"\]\((?:\.\./)?({names})(#[^)]*)?\)", lambda m: f"]({PAGES[m[1]]}{m[2] or ''})", markdown)
