"""Run all benchmarks in turn; their figures also go to build/bench.json.

python -m benchmarks           # every part; at least half an hour on two cores
python -m benchmarks labels    # one part: commands, metrics, memory, statistics, labels, checks, worlds, opinions,
                               # judging or draws
"""

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import commands, draws, in_memory, judging, label_scale, on_spark, opinions, quality, statistics, worlds

PARTS: dict[str, Callable[[], Any]] = {
    "commands": lambda: commands.main([]),
    "metrics": on_spark.main,
    "memory": lambda: in_memory.measure(50_000),
    "statistics": lambda: statistics.measure_sizes([500_000, 1_000_000], 1_000),
    "labels": lambda: label_scale.measure_all([1_000_000, 10_000_000, 50_000_000]),
    "checks": quality.main,
    "worlds": lambda: worlds.main([]),
    "opinions": lambda: opinions.main([]),
    "judging": lambda: judging.main([]),
    "draws": draws.main,
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    target = Path("build/bench.json")
    target.parent.mkdir(exist_ok=True)
    figures = json.loads(target.read_text("utf-8")) if target.exists() else {}
    for part in sys.argv[1:] or PARTS:
        figures[part] = PARTS[part]()
        target.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    if "memory" in figures:
        print(json.dumps(figures["memory"]["ratio"]))
