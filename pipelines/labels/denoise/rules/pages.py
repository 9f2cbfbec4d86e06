"""Rules on whole pages."""

import numpy as np

from pipelines.labels.denoise.registry import Arrays, rule
from pipelines.labels.denoise.settings import EverythingClicked
from udfs.ragged import Bools


@rule("everything_clicked", "page")
def everything_clicked(settings: EverythingClicked, page: Arrays) -> Bools:
    """A page of ten results or more with every result clicked: a prefetcher or a scraper, not a reader.

    Arrays: `results`, `results_clicked`.
    """
    every = np.equal(page["results_clicked"], page["results"])
    return every & (page["results"] >= settings.results)
