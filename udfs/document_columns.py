"""What metrics read of the ranked and labelled documents: categories, popularity, and the subtopics of labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from udfs.block import Array
from udfs.categories import NONE, CategorySets
from udfs.category_columns import read_categories, read_encoded
from udfs.ragged import Ints
from udfs.tables import TableReader, order_by_code_point

SUBTOPICS = "subtopics"  # of a label: those that judges gave it, or else the categories of its document
ID_ORDER = "id_order"  # of a label, among all: the place of its document in the order of ids


@dataclass(frozen=True, eq=False)
class DocumentColumns:
    """Columns with one value per row of the rankings and of the labels."""

    ranked: dict[str, Array]
    labelled: dict[str, Array]
    sets: CategorySets | None  # what categories and subtopics number, where a document has several


def read_document_columns(rankings: TableReader, labels: TableReader) -> DocumentColumns:
    """Read them from the tables of a Spark stage, whose rows have the columns of their documents."""
    ranked: dict[str, Array] = {}
    if rankings.has("popularity"):
        ranked["popularity"] = rankings.column("popularity").to_numpy()
    sources = [
        source.column(name) for source, name in ((rankings, "category"), (labels, SUBTOPICS)) if source.has(name)
    ]
    numbers, sets = read_encoded(sources)
    if rankings.has("category"):
        ranked["category"] = numbers[0]
    labelled: dict[str, Array] = {SUBTOPICS: numbers[-1]} if labels.has(SUBTOPICS) else {}
    return _order_ids(DocumentColumns(ranked, labelled, sets), labels)


def look_up_documents(
    doc: Ints, label_doc: Ints, labels: TableReader, documents: TableReader | None, catalogue: Ints | None = None
) -> DocumentColumns:
    """Look them up in the table of documents, whose ids are `catalogue`, by the ids of ranked and labelled ones."""
    ranked: dict[str, Array] = {}
    labelled: dict[str, Array] = {}
    judged = [labels.column(SUBTOPICS)] if labels.has(SUBTOPICS) else []
    categories = [documents.column("category")] if documents and documents.has("category") else []
    numbers, sets = read_categories([*judged, *categories]) if judged or categories else ([], None)
    if judged:
        labelled[SUBTOPICS] = numbers[0]
    if documents and catalogue is not None:
        look_up = _LookUp(catalogue)
        ranked["catalogue"] = look_up(doc, np.arange(len(catalogue)), NONE)
        if categories:
            ranked["category"] = look_up(doc, numbers[-1], NONE)
            of_label = look_up(label_doc, numbers[-1], NONE)
            labelled[SUBTOPICS] = np.where(numbers[0] >= 0, numbers[0], of_label) if judged else of_label
        if documents.has("popularity"):
            popularity = documents.numbers("popularity")
            ranked["popularity"] = look_up(doc, popularity / np.nansum(popularity), np.nan)
    return _order_ids(DocumentColumns(ranked, labelled, sets), labels)


def _order_ids(columns: DocumentColumns, labels: TableReader) -> DocumentColumns:
    """Add the order of ids, which decides ties in the ideal ranking of documents with several subtopics."""
    if columns.sets is not None and SUBTOPICS in columns.labelled:
        columns.labelled[ID_ORDER] = order_by_code_point(labels.ids("doc_id"))
    return columns


class _LookUp:
    """Finds the values of a catalogue by document; of a document that it has twice, the first."""

    def __init__(self, catalogue: Ints) -> None:
        self._order = np.argsort(catalogue, kind="stable")
        self._ids = catalogue[self._order]

    def __call__(self, doc: Ints, values: Array, default: float) -> Array:
        if not len(self._ids):
            return np.full(len(doc), default, dtype=values.dtype)
        at = np.minimum(np.searchsorted(self._ids, doc), len(self._ids) - 1)
        return np.where(self._ids[at] == doc, values[self._order[at]], values.dtype.type(default))
