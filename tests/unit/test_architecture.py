"""The architecture, read from the syntax trees: imports go down only, names are unique, packages are documented.

`python -m tests.unit.test_architecture` prints the diagram that docs/architecture.md contains.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("schemas", "udfs", "pipelines", "jobs", "assay")

# From the bottom to the top: a module may import its own layer and those before it. The first pattern that matches a
# module's name decides its layer.
LAYERS = {
    "schemas": r"schemas",
    "udfs": r"udfs",
    "warehouse": r"pipelines\.warehouse",
    # Each room's section of the configuration, and the registries whose names it accepts.
    "settings": r"pipelines\.\w+\.(\w+\.)?settings$"
    r"|pipelines\.inputs\.(format_registry|formats|foreign)\b"
    r"|pipelines\.quality\.(registry|checks)\b"
    r"|pipelines\.labels\.history\b"
    r"|pipelines\.labels\.propensity\.(registry|estimators|evidence|edges|information|measure|power)\b"
    r"|pipelines\.comparison\.conditions\b"
    r"|pipelines\.sharing\.tracking\.(registry|backends|protocol)\b",
    "config": r"pipelines\.config",
    "inputs": r"pipelines\.inputs",
    "quality": r"pipelines\.quality",
    "labels": r"pipelines\.labels",
    "scoring": r"pipelines\.scoring",
    "comparison": r"pipelines\.comparison",
    "report": r"pipelines\.report",
    "sharing": r"pipelines\.sharing",
    "runs": r"pipelines\.(evaluate|label|plan|run|stages)$|pipelines$",
    "commands": r"jobs|assay",
}
SIMULATION = "simulation"  # beside the layers: it imports schemas only
REGISTRY = "schemas.registry"  # the only module that discovers others


@dataclass(frozen=True)
class Import:
    """One import of a module of ours by another."""

    importer: str
    imported: str
    line: int

    def __str__(self) -> str:
        path = locate(self.importer).relative_to(ROOT)
        return f"{path}:{self.line} ({find_layer(self.importer)}) imports {self.imported} ({find_layer(self.imported)})"


@cache
def load_modules() -> dict[str, ast.Module]:
    """Parse every module of the packages."""
    modules = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            modules[name] = ast.parse(path.read_text(encoding="utf-8"))
    return modules


def locate(module: str) -> Path:
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def find_layer(module: str) -> str:
    if module.startswith("pipelines.simulation"):
        return SIMULATION
    return next(layer for layer, pattern in LAYERS.items() if re.match(pattern, module))


@cache
def list_imports() -> list[Import]:
    """List the imports between modules of ours, also those inside functions and for type checking."""
    return [
        Import(importer=module, imported=name, line=node.lineno)
        for module, tree in load_modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in resolve_names(node)
        if name != module
    ]


def resolve_names(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Yield the modules of ours that an import statement names."""
    modules = load_modules()
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in modules)
    elif node.module in modules:
        names = {f"{node.module}.{alias.name}" for alias in node.names}
        yield from sorted(names & modules.keys())
        if not names <= modules.keys():
            yield str(node.module)


def is_upward(each: Import) -> bool:
    """Whether a module imports a layer above its own, or crosses the border of the simulation wrongly."""
    importer, imported = find_layer(each.importer), find_layer(each.imported)
    if importer == imported:
        return False
    if SIMULATION in (importer, imported):
        return (importer, imported) not in ((SIMULATION, "schemas"), ("commands", SIMULATION))
    order = list(LAYERS)
    return order.index(imported) > order.index(importer)


def render_diagram() -> str:
    """Render the layer graph as a mermaid block, without the arrows that follow from others."""
    graph: dict[str, set[str]] = {layer: set() for layer in ["schemas", SIMULATION, *list(LAYERS)[1:]]}
    for each in list_imports():
        importer, imported = find_layer(each.importer), find_layer(each.imported)
        if importer != imported and not is_upward(each):
            graph[importer].add(imported)

    def reach(layer: str) -> set[str]:
        return graph[layer].union(*(reach(below) for below in graph[layer]))

    lines = ["```mermaid", "flowchart TD"]
    for layer, below in reversed(graph.items()):
        direct = below.difference(*(reach(other) for other in below))
        lines += [f"    {layer} --> {other}" for other in sorted(direct)]
    return "\n".join([*lines, "```"])


def test_imports_go_down_only() -> None:
    upward = [str(each) for each in list_imports() if is_upward(each)]
    rule = f"a module may import its own layer and those before it: {' < '.join(LAYERS)}; {SIMULATION} only schemas"
    assert not upward, "\n".join([rule, *upward])


def test_an_upward_import_is_reported_with_file_layers_and_direction() -> None:
    wrong = Import(importer="pipelines.labels.settings", imported="pipelines.config.model", line=7)
    assert is_upward(wrong)
    assert not is_upward(Import(importer="pipelines.config.model", imported="pipelines.labels.settings", line=7))
    expected = "pipelines/labels/settings.py:7 (settings) imports pipelines.config.model (config)"
    assert str(wrong) == expected


def test_the_configuration_is_loaded_without_anything_heavy() -> None:
    script = "import sys, pipelines.config.load; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    heavy = {"pyspark", "great_expectations", "mlflow", "scipy"} & set(done.stdout.split())
    assert not heavy, f"every command loads the settings: import {', '.join(sorted(heavy))} inside functions"


def test_no_two_rooms_have_a_public_class_or_function_of_the_same_name() -> None:
    homes: dict[str, set[str]] = defaultdict(set)
    for module, tree in load_modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                if find_room(module) == "assay":  # the public face has the names of what it runs
                    continue
                homes[node.name].add(module)
    homes.pop("command")  # of every command
    homes.pop("main", None)
    shared = {name: sorted(modules) for name, modules in homes.items() if len({find_room(m) for m in modules}) > 1}
    assert not shared, "\n".join(["one name, one thing:", *(f"{n}: {', '.join(m)}" for n, m in sorted(shared.items()))])


def find_room(module: str) -> str:
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "pipelines" else parts[0]


def test_every_package_has_a_docstring() -> None:
    packages = {name: tree for name, tree in load_modules().items() if locate(name).stem == "__init__"}
    bare = [name for name, tree in packages.items() if not ast.get_docstring(tree)]
    assert not bare, f"say what each package does, its tables and its files in reading order: {', '.join(bare)}"


def test_only_the_registry_discovers_modules() -> None:
    scanning = [
        module
        for module, tree in load_modules().items()
        for node in ast.walk(tree)
        if module != REGISTRY
        and (
            (isinstance(node, ast.Import) and any(alias.name == "pkgutil" for alias in node.names))
            or (isinstance(node, ast.ImportFrom) and node.module == "pkgutil")
        )
    ]
    assert not scanning, f"use schemas.registry.Registry instead of pkgutil: {', '.join(scanning)}"


def test_no_file_is_longer_than_400_lines_and_no_function_than_60() -> None:
    long = []
    for module, tree in load_modules().items():
        lines = len(locate(module).read_text(encoding="utf-8").splitlines())
        long += [f"{module}: {lines} lines"] if lines > 400 else []
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno >= 60:
                long.append(f"{module}.{node.name}: {(node.end_lineno or 0) - node.lineno + 1} lines")
    assert not long, "\n".join(long)


def test_the_architecture_page_contains_the_diagram() -> None:
    page = ROOT / "docs" / "architecture.md"
    fix = "replace the diagram by what `python -m tests.unit.test_architecture` prints"
    assert render_diagram() in page.read_text(encoding="utf-8"), fix


if __name__ == "__main__":
    print(render_diagram())
