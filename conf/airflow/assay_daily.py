"""Evaluate every day with Airflow 3: copy this file into the DAG folder.

Assay stays in its own environment; Airflow only starts its command. These variables of Airflow's environment are read:

- ASSAY_HOME: the folder of the project, with its .venv; default /srv/assay
- ASSAY_CONFIG: the configuration; default conf/prod.yaml, relative to ASSAY_HOME
- ASSAY_WAREHOUSE: the warehouse of that configuration; assets are named after it
- ASSAY_LAUNCH: the command; default `ASSAY_HOME/.venv/bin/assay evaluate`. On a cluster use spark-submit of the same
  environment: `/srv/assay/.venv/bin/spark-submit --master yarn /srv/assay/jobs/evaluate.py`
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Asset, BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from airflow.timetables.interval import CronDataIntervalTimetable

HOME = os.environ.get("ASSAY_HOME", "/srv/assay")
CONFIG = os.environ.get("ASSAY_CONFIG", "conf/prod.yaml")
WAREHOUSE = os.environ.get("ASSAY_WAREHOUSE", f"file://{HOME}/warehouse")
LAUNCH = os.environ.get("ASSAY_LAUNCH", f"{HOME}/.venv/bin/assay evaluate")

# Consumers are scheduled on these: DAG(schedule=[Asset(name="assay_comparisons", uri=…)]).
TABLES = ("query_metrics", "segment_metrics", "comparisons", "query_changes", "validation_results")

# The same data, configuration and candidates would end in the same way: no retry. Any other code may pass.
FINAL = {
    2: "the configuration is wrong",
    4: "the data failed its quality checks; validation_results has the reasons",
    6: "the gate does not pass; the run is published",
}


class AssayOperator(BaseOperator):
    """Run Assay for a date and log its output; what cannot pass is not tried again."""

    template_fields = ("date",)

    def __init__(self, *, date: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.date = date
        self._process: subprocess.Popen[str] | None = None

    def execute(self, context: Any) -> None:
        words = ["--config", CONFIG, "--date", self.date]
        command = [*shlex.split(LAUNCH), *words]
        self.log.info("ASSAY_LAUNCH %s", shlex.join(words))  # without its own words, which may have secrets
        self._process = subprocess.Popen(
            command, cwd=HOME, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        for line in self._process.stdout or ():
            self.log.info("%s", line.rstrip())
        code = self._process.wait()
        if code in FINAL:
            raise AirflowFailException(f"exit code {code}: {FINAL[code]}")
        if code:
            raise AirflowException(f"exit code {code}; the log has the reason. A retry reuses committed work")

    def on_kill(self) -> None:
        """Let Assay remove what it has not committed."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)


with DAG(
    dag_id="assay_daily",
    # A plain cron string has no data interval in Airflow 3. This one ends when the run starts.
    schedule=CronDataIntervalTimetable("15 4 * * *", timezone="UTC"),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 3, "retry_delay": timedelta(minutes=10), "retry_exponential_backoff": True},
    tags=["search", "evaluation"],
) as dag:
    AssayOperator(
        task_id="evaluate",
        date="{{ data_interval_start | ds }}",
        execution_timeout=timedelta(hours=6),
        outlets=[Asset(name=f"assay_{table}", uri=f"{WAREHOUSE}/{table}") for table in TABLES],
    )
