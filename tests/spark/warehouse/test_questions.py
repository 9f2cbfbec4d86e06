"""Every query of `docs/questions.md` runs in Spark SQL and answers its question."""

from pathlib import Path

from pyspark.sql import SparkSession

from pipelines.warehouse.views import render_spark_views
from tests.helpers.questions import SPARK, check_answers, publish_two_days


def test_spark_answers_the_questions(spark: SparkSession, tmp_path: Path) -> None:
    for statement in render_spark_views(publish_two_days(tmp_path)).split(";\n"):
        spark.sql(statement.rstrip(";"))
    check_answers(lambda number: [row.asDict() for row in spark.sql(SPARK[number].rstrip().rstrip(";")).collect()])
