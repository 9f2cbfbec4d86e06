"""Files of lines: text as it is, anything else as JSON."""

import json
from pathlib import Path


def write_lines(path: Path, *rows: object) -> str:
    """Write one line per row; returns the path as text."""
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return str(path)
