"""`import assay`: instant, complete, and helpful about names it does not have."""

import subprocess
import sys

import pytest

import assay


def test_the_import_loads_nothing_heavy() -> None:
    script = "import sys, assay; dir(assay); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    heavy = {"pyspark", "pandas", "mlflow", "numpy", "pyarrow", "pydantic", "great_expectations", "scipy"}
    assert not heavy & set(done.stdout.split())


@pytest.mark.parametrize("name", assay.__all__)
def test_every_name_resolves_and_is_listed(name: str) -> None:
    value = getattr(assay, name)
    assert callable(value)
    assert value is getattr(assay, name)
    assert name in dir(assay)


def test_an_unknown_name_is_explained() -> None:
    with pytest.raises(
        AttributeError, match=r"no attribute 'Evaluater'; it has ComparisonResult, Conventions, EvaluationResult"
    ):
        assay.Evaluater  # noqa: B018


def test_the_package_is_typed_for_its_users() -> None:
    script = "import importlib.resources as r; print(r.files('assay').joinpath('py.typed').is_file())"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "True\n"
