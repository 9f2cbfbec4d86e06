# Every target creates the virtual environment first, if it is missing or older than the lock.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO := build/demo
PORT ?= 5000

.PHONY: help setup lock demo ui test unit fuzz lint types bench docs clean java

help:  ## print this list
	@grep -E '^[a-z-]+:.*?## ' $(MAKEFILE_LIST) | awk -F':.*?## ' '{printf "  make %-8s %s\n", $$1, $$2}'

setup: $(READY)  ## create the virtual environment from the lock

$(READY): conf/constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Assay needs Python 3.11 or newer; $$($(PYTHON) --version 2>&1) was found. Try: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Creating $(VENV) (once; about a minute)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@awk '/^uv==/ {on=1} on; on && !/\\$$/ {exit}' conf/constraints.txt > $(VENV)/uv.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r $(VENV)/uv.txt
	@$(BIN)/uv pip sync -q --python $(BIN)/python --require-hashes conf/constraints.txt
	@$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

java:
	@java -version >/dev/null 2>&1 || { echo "Java 17 or newer is needed and none was found. Install it, e.g.: apt-get install openjdk-17-jre-headless (Debian), brew install openjdk@17 (macOS)" >&2; exit 1; }

lock: $(READY)  ## resolve pyproject.toml into conf/constraints.txt again
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --upgrade --generate-hashes --no-header \
	  --no-annotate --no-emit-index-url --no-emit-find-links --extra dev pyproject.toml -o conf/constraints.txt

demo: $(READY) java  ## draw a week of search logs, evaluate four systems by them, and show how near the truth that is
	@$(BIN)/python -m jobs.demo $(DEMO)
	@echo "Query it:  $(BIN)/assay tables --sql duckdb --warehouse $(DEMO)/warehouse"
	@echo "See it:    make ui, or open the report named above"

ui: $(READY)  ## open MLflow on the runs of the demo
	@test -f $(DEMO)/warehouse/mlflow/mlflow.db || { echo "There is nothing to show yet: make demo" >&2; exit 1; }
	@echo "MLflow on http://127.0.0.1:$(PORT) (Ctrl-C ends it)"
	@MLFLOW_DISABLE_TELEMETRY=true MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false $(BIN)/mlflow server --backend-store-uri sqlite:///$(DEMO)/warehouse/mlflow/mlflow.db \
	  --host 127.0.0.1 --port $(PORT) --workers 1

test: $(READY) java  ## run all tests
	@$(BIN)/python -m pytest

unit: $(READY)  ## run the tests that need no Java: seconds
	@$(BIN)/python -m pytest tests/unit

fuzz: $(READY) java  ## corrupt the inputs in 500 random ways; SEED=7 draws others
	@FUZZ_CASES=500 FUZZ_SEED=$(or $(SEED),1) $(BIN)/python -m pytest -q tests/spark/test_fuzz.py

lint: $(READY)  ## check style and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(READY)  ## check types
	@$(BIN)/mypy

docs: $(READY)  ## write the generated pages of docs/ again
	@$(BIN)/python -m jobs.docs docs

bench: $(READY) java  ## measure Assay against its peers, as ratios in one run
	@$(BIN)/python -m benchmarks

clean:  ## remove the virtual environment and everything that was built
	@rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
