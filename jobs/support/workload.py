"""What Spark ran for a command: jobs, stages, and the tasks of each stage. `--debug` prints it."""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)


def log_workload(spark: SparkSession) -> None:
    """Log the number of jobs, stages and tasks; Spark Connect does not report them."""
    if logger.isEnabledFor(logging.DEBUG) and hasattr(spark, "_jsparkSession"):
        logger.debug("Spark ran %s", count_workload(spark))


def count_workload(spark: SparkSession) -> str:
    """Count the jobs of a session, the stages that ran, and their tasks; stages of equal size are counted together."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [job for job in map(tracker.getJobInfo, tracker.getJobIdsForGroup()) if job is not None]
    stages = {stage for job in jobs for stage in job.stageIds}
    ran = [info for info in map(tracker.getStageInfo, stages) if info is not None and info.numCompletedTasks]
    sizes = Counter(info.numTasks for info in ran)
    tasks = ", ".join(f"{count} of {size}" for size, count in sorted(sizes.items()))
    return f"{len(jobs)} jobs, {len(ran)} stages, {sum(i.numTasks for i in ran)} tasks; stages by tasks: {tasks}"
