"""How much of the catalogue a system shows."""

import numpy as np

from udfs.block import safe_ratio
from udfs.exposure import Exposure
from udfs.ragged import Floats
from udfs.registry import metric


@metric(
    reference="Ge, Delgado-Battenfeld and Jannach, Beyond accuracy, RecSys 2010",
    cutoff="required",
    defined="always",
    condensable=False,
    needs=("documents",),
    scope="system",
)
def catalog_coverage(exposure: Exposure, k: int) -> Floats:
    """The share of the catalogue that a system shows in the top k of any query.

    Formula: distinct documents in the top k of any list / documents in the catalogue. One number per system:
    it is no mean over queries.

    Edges: documents that are not in the catalogue are not counted. It grows with the number of queries, so
    only systems that answered the same queries can be compared.

    Use it: to see whether part of a catalogue is never shown.
    Not: as a target in itself.
    """
    shown = exposure.documents.counts(exposure.in_catalogue)
    return safe_ratio(shown, np.full(exposure.size, exposure.catalogue_size), empty=np.nan)
