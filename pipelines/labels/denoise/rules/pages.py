"""Rules on whole pages."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from pipelines.labels.denoise.registry import rule
from pipelines.labels.denoise.settings import EverythingClicked


@rule("everything_clicked", "page")
def everything_clicked(settings: EverythingClicked) -> Column:
    """A page of ten results or more with every result clicked: a prefetcher or a scraper, not a reader.

    Features: `results`, `results_clicked`.
    """
    return (F.col("results") >= settings.results) & (F.col("results_clicked") == F.col("results"))
