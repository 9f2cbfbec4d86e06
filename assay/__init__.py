"""The public interface of Assay, for notebooks and Spark code.

Each name is imported when it is first used, so `import assay` is instant and starts nothing. Read `_MODULES` for where
each name is defined.

Files in reading order: `evaluation` (`evaluate`), `labelling` (`label`), `comparison` (`compare`), `arguments` (what
they take), `in_memory` and `on_spark` (the two engines), `computed` (what was computed), `result` (what they return).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.comparison import ComparisonResult, compare
    from assay.evaluation import evaluate
    from assay.labelling import label
    from assay.result import EvaluationResult, LabelResult
    from pipelines.warehouse.catalog.read import read_catalog_table
    from pipelines.warehouse.tables import read_table
    from udfs.conventions import Conventions
    from udfs.evaluator import Evaluator, evaluate_tables
    from udfs.functions import compute_metric, register_functions
    from udfs.multi_list import evaluate_pairs, evaluate_systems

_MODULES = {
    "ComparisonResult": "assay.comparison",
    "Conventions": "udfs.conventions",
    "EvaluationResult": "assay.result",
    "Evaluator": "udfs.evaluator",
    "LabelResult": "assay.result",
    "compare": "assay.comparison",
    "compute_metric": "udfs.functions",
    "evaluate": "assay.evaluation",
    "evaluate_pairs": "udfs.multi_list",
    "evaluate_systems": "udfs.multi_list",
    "evaluate_tables": "udfs.evaluator",
    "label": "assay.labelling",
    "read_catalog_table": "pipelines.warehouse.catalog.read",
    "read_table": "pipelines.warehouse.tables",
    "register_functions": "udfs.functions",
}

__all__ = [
    "ComparisonResult",
    "Conventions",
    "EvaluationResult",
    "Evaluator",
    "LabelResult",
    "compare",
    "compute_metric",
    "evaluate",
    "evaluate_pairs",
    "evaluate_systems",
    "evaluate_tables",
    "label",
    "read_catalog_table",
    "read_table",
    "register_functions",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'assay' has no attribute {name!r}; it has {', '.join(__all__)}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value  # the next use does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
