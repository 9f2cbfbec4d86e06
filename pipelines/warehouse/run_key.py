"""The key of a run: two runs with the same key are the same work."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pipelines.warehouse.code_version import hash_code


def build_run_key(date: dt.date, settings: Mapping[str, Any], inputs: Mapping[str, str]) -> str:
    """Hash everything that determines the numbers: the date, the configuration, the data and the code."""
    return hash_json([date.isoformat(), settings, inputs, hash_code()])[:12]


def hash_json(value: Any) -> str:
    """Return the SHA-256 of a value's canonical JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
