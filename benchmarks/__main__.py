"""All benchmarks, one after the other; their figures also go to build/bench.json."""

import json
import warnings
from pathlib import Path
from typing import Any

from benchmarks import in_memory, on_spark, quality

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    Path("build").mkdir(exist_ok=True)
    figures: dict[str, Any] = {"on Spark": on_spark.main(), "in memory": in_memory.measure(50_000)}
    figures["checks of the data"] = quality.main()
    print(json.dumps(figures["in memory"]["ratio"]))
    Path("build/bench.json").write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
