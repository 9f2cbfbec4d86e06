# Every target creates the virtual environment first, if it is missing or older than the lock.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO := build/demo
PORT ?= 5000

.PHONY: help setup lock demo ui test coverage unit fuzz faults environment cluster-test airflow-test jars lakehouse-test lint types audit bench docs site clean java

help:  ## print this list
	@grep -E '^[a-z-]+:.*?## ' $(MAKEFILE_LIST) | awk -F':.*?## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(READY)  ## create the virtual environment from the lock

$(READY): conf/constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Assay needs Python 3.11 or newer; $$($(PYTHON) --version 2>&1) was found. Try: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Creating $(VENV) (once; about a minute)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@awk '/^uv==/ {on=1} on; on && !/\\$$/ {exit}' conf/constraints.txt > $(VENV)/uv.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r $(VENV)/uv.txt
	@$(BIN)/uv pip sync -q --compile-bytecode --python $(BIN)/python --require-hashes conf/constraints.txt
	@$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	@$(BIN)/python -m jobs.support.prepare  # commands start twice as fast with what it writes
	@touch $@

java:
	@java -version >/dev/null 2>&1 || { echo "Assay needs Java 17 or newer, and there is none. Install it, e.g.: apt-get install openjdk-17-jre-headless (Debian), brew install openjdk@17 (macOS)" >&2; exit 1; }

lock: $(READY)  ## resolve the packages of Assay, its documentation and Airflow into their locks again
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --upgrade --generate-hashes --no-header \
	  --no-annotate --no-emit-index-url --no-emit-find-links --extra dev pyproject.toml -o conf/constraints.txt
	@printf "mkdocs-material\nziamath[latex]\n" | $(BIN)/uv pip compile -q --universal --python-version 3.11 --upgrade --generate-hashes --no-header \
	  --no-annotate --no-emit-index-url --no-emit-find-links - -o conf/docs.txt
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --upgrade --generate-hashes --no-header \
	  --no-annotate --no-emit-index-url --no-emit-find-links conf/airflow/requirements.txt -o conf/airflow/constraints.txt
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --upgrade --generate-hashes --no-header \
	  --no-annotate --no-emit-index-url --no-emit-find-links conf/lakehouse/requirements.txt -o conf/lakehouse/constraints.txt

demo: $(READY) java  ## simulate a week of search logs, evaluate four systems on it, and compare with the truth
	@$(BIN)/python -m jobs.demo $(DEMO)
	@echo "Query it:  $(BIN)/assay tables --sql duckdb --warehouse $(DEMO)/warehouse"
	@echo "View it:   make ui, or open the report named above"

ui: $(READY)  ## start MLflow on the runs of the demo
	@test -f $(DEMO)/warehouse/mlflow/mlflow.db || { echo "There are no runs yet: make demo" >&2; exit 1; }
	@echo "MLflow on http://127.0.0.1:$(PORT)/#/experiments/1/runs?workflowType=machine_learning (stop with Ctrl-C)"
	@MLFLOW_DISABLE_TELEMETRY=true MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false $(BIN)/mlflow server --backend-store-uri sqlite:///$(DEMO)/warehouse/mlflow/mlflow.db \
	  --host 127.0.0.1 --port $(PORT) --workers 1

# Two processes take the files in the order of their folders: long commands first, short unit tests last.
TESTS := -m pytest -n 2 --dist loadscope --no-loadscope-reorder --durations=10

test: $(READY) java  ## run all tests in two processes, and print the slowest
	@$(BIN)/python $(TESTS)

# Of its own: Python runs a third longer where each branch is recorded.
coverage: $(READY) java  ## run all tests, and print the branch coverage
	@$(BIN)/python $(TESTS) --cov --cov-report=term:skip-covered

unit: $(READY)  ## run the tests that need no Java
	@$(BIN)/python -m pytest tests/unit

fuzz: $(READY) java  ## corrupt the inputs in 500 random ways; SEED=7 for others
	@FUZZ_CASES=500 FUZZ_SEED=$(or $(SEED),1) $(BIN)/python -m pytest -q tests/spark/quality/test_fuzz.py

faults: $(READY) java  ## disturb the command in 200 ways and check what must hold; SEED=7 for others, COUNT=20 for fewer
	@$(BIN)/python -m tests.faults --count $(or $(COUNT),200) --seed $(or $(SEED),1)

environment: build/environment.tar.gz  ## pack the libraries that workers of a cluster need, into build/environment.tar.gz

# Relocatable, from the lock, without the packages for development. Spark brings its own pyspark.
build/environment.tar.gz: conf/constraints.txt pyproject.toml | $(READY)
	@mkdir -p build && rm -rf build/environment $@
	@$(BIN)/uv venv -q --relocatable --python $(BIN)/python build/environment
	@$(BIN)/uv pip install -q --compile-bytecode --python build/environment/bin/python -c conf/constraints.txt -r pyproject.toml
	@tar -czf $@ --exclude=pyspark -C build/environment .

cluster-test: $(READY) java build/environment.tar.gz  ## run on a standalone cluster and a Spark Connect server of this machine, and kill parts of it
	@$(BIN)/python -m pytest -m cluster -v tests/end_to_end/cluster

airflow-test: $(READY) java  ## run the DAG in a real Airflow, in .venv-airflow
	@test -x .venv-airflow/bin/airflow || { $(BIN)/uv venv -q .venv-airflow --python $(BIN)/python && \
	  $(BIN)/uv pip sync -q --python .venv-airflow/bin/python --require-hashes conf/airflow/constraints.txt; }
	@$(BIN)/python -m pytest -m airflow -v tests/end_to_end/airflow

# The runtimes of Delta, Iceberg and S3 for the locked Spark, and the listener of OpenLineage.
# Delta 4.1.0 needs Spark 4.1.0 or 4.1.1.
JARS := io.delta:delta-spark_4.1_2.13:4.4.0 io.delta:delta-storage:4.4.0 \
  org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0 \
  org.apache.hadoop:hadoop-aws:3.4.2 software.amazon.awssdk:bundle:2.29.52 io.openlineage:openlineage-spark_2.13:1.53.0

jars: build/jars/.ready  ## fetch the runtimes of Delta, Iceberg, S3 and OpenLineage with Maven, into build/jars

build/jars/.ready: Makefile
	@command -v mvn >/dev/null || { echo "Maven fetches the runtimes, and there is none. Install it, e.g.: apt-get install maven" >&2; exit 1; }
	@rm -rf build/jars
	@for jar in $(JARS); do mvn -q -B dependency:copy -Dartifact=$$jar -DoutputDirectory=build/jars || exit 1; done
	@touch $@

.venv-lakehouse/.ready: conf/lakehouse/constraints.txt $(READY)
	@test -x .venv-lakehouse/bin/python || $(BIN)/uv venv -q .venv-lakehouse --python $(BIN)/python
	@$(BIN)/uv pip sync -q --python .venv-lakehouse/bin/python --require-hashes conf/lakehouse/constraints.txt
	@touch $@

lakehouse-test: $(READY) java build/jars/.ready .venv-lakehouse/.ready  ## publish to Delta, Iceberg and S3, read them with other tools, and follow the lineage
	@$(BIN)/python -m pytest -m lakehouse -v tests/end_to_end/lakehouse

lint: $(READY)  ## check style and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(READY)  ## check types
	@$(BIN)/mypy

audit: $(READY)  ## look for known vulnerabilities of the locked packages; needs a network
	@$(BIN)/uv tool run --quiet pip-audit@2.10.1 --strict --disable-pip --require-hashes -r conf/constraints.txt

docs: $(READY)  ## regenerate the reference pages of docs/
	@$(BIN)/python -m jobs.docs docs

# MkDocs has an environment of its own: Assay does not need it.
build/docs-venv/.ready: conf/docs.txt $(READY)
	@test -x build/docs-venv/bin/python || $(PYTHON) -m venv build/docs-venv
	@$(BIN)/uv pip sync -q --python build/docs-venv/bin/python --require-hashes conf/docs.txt
	@touch $@

site: build/docs-venv/.ready  ## build the documentation site into build/site; a broken link is an error
	@# With --quiet, MkDocs would not count warnings, and a broken link would pass.
	@NO_MKDOCS_2_WARNING=1 build/docs-venv/bin/mkdocs build --strict -f conf/mkdocs.yml > build/site.log 2>&1 || { cat build/site.log >&2; exit 1; }
	@echo "Site: build/site/index.html"

bench: $(READY) java  ## measure Assay against other tools, as ratios in one run
	@$(BIN)/python -m benchmarks

clean:  ## remove the virtual environment and all build output
	@rm -rf $(VENV) .venv-airflow .venv-lakehouse build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
