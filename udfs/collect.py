"""From whole tables of rankings and labels to blocks, vectorised over all queries and rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from schemas.errors import DataQualityError, InputError
from udfs.block import Array, Block, QueryPool
from udfs.categories import NONE, CategorySets
from udfs.conventions import Conventions
from udfs.document_columns import SUBTOPICS, look_up_documents, read_document_columns
from udfs.draws import Evidence, Grades, Hashes, LabelDraws
from udfs.lists import build_block
from udfs.match import keep_best_labels, match_labels, take_grades
from udfs.order import build_sort_keys, order_rows
from udfs.ragged import Bools, Floats, Ints, Ragged
from udfs.tables import TableReader, encode_ids, hash_ids, hash_texts, order_by_code_point, unpack_records

DOC_TEXT = "doc_text"  # in a Spark stage: the id of a ranked document whose `doc_id` is the hash
ROWS_PER_BLOCK = 1 << 17  # bounds memory, and keeps what the metrics share in the CPU cache


@dataclass(frozen=True, eq=False)
class LabelLists:
    """All labels, query by query: one grade per query and document; missing in some where labels are drawn."""

    queries: Ragged
    doc: Ints
    grade: Floats
    data: dict[str, Array]
    drawn: LabelEvidence | None = None


@dataclass(frozen=True, eq=False)
class LabelEvidence:
    """What labels are drawn from."""

    draws: LabelDraws
    evidence: Evidence  # per label
    shown: Bools  # per label, whether it rests on evidence of its own
    query_hash: Hashes  # per query


@dataclass(frozen=True, eq=False)
class ListCollection:
    """Every list of every system, best document first, and the labels of every query."""

    systems: pa.Array
    queries: pa.Array
    index: Ints  # per system and query, the number of its list, or −1
    system: Ints  # per list
    query: Ints  # per list
    lists: Ragged
    doc: Ints  # per ranked document
    row_data: dict[str, Array]
    tied: Ints  # per list
    list_data: dict[str, Array]
    labels: LabelLists
    query_row: Ints  # per query, its last row in the table of queries, or −1
    sets: CategorySets | None = None  # what categories number, where a document has several

    def require_no_ties(self) -> None:
        """Raise where lists have ties, naming one of them."""
        if self.tied.any():
            at = int(np.argmax(self.tied > 0))
            where = f"{self.systems[self.system[at]]}, query {self.queries[self.query[at]]}"
            raise DataQualityError(
                f"{int((self.tied > 0).sum())} lists have documents at the same place, for example {where}"
            )

    def blocks(self) -> Iterator[tuple[slice, Block, Ints]]:
        """The lists as blocks of bounded size, each with its slice of the lists and their numbers of duplicates."""
        labelled = self.labels.queries.lengths[self.query]
        for part in Ragged.of_lengths(self.lists.lengths + labelled).slices(ROWS_PER_BLOCK):
            rows = slice(self.lists.offsets[part.start], self.lists.offsets[part.stop])
            lists = Ragged(self.lists.offsets[part.start : part.stop + 1] - rows.start)
            list_data = {name: values[part] for name, values in self.list_data.items()}
            yield part, *self._build_block(lists, rows, self.query[part], list_data)

    def select_block(self, system: int, query: Ints) -> Block:
        """The lists of a system for these queries as a block, one per query, empty where it has none."""
        index = self.index[system, query]
        lists = Ragged.of_lengths(np.where(index < 0, 0, self.lists.lengths[index]))
        rows = np.repeat(self.lists.offsets[index], lists.lengths) + lists.place - 1
        return self._build_block(lists, rows, query, {})[0]

    def draw_labels(self, part: slice) -> Grades:
        """Grades of the labels of the queries of these lists: one row per draw."""
        labels, drawn = self.labels, self.labels.drawn
        assert drawn is not None
        borders = _find_range(self.query[part])
        offsets = labels.queries.offsets[borders]
        rows = slice(offsets[0], offsets[-1])
        return drawn.draws.draw(
            Ragged(offsets - offsets[0]),
            drawn.query_hash[borders.start : borders.stop - 1],
            labels.doc[rows],
            labels.grade[rows],
            drawn.evidence[rows],
        )

    def _build_block(
        self, lists: Ragged, rows: slice | Ints, query: Ints, list_data: dict[str, Array]
    ) -> tuple[Block, Ints]:
        doc = self.doc[rows]
        labelled = Ragged.of_lengths(self.labels.queries.lengths[query])
        at = np.repeat(self.labels.queries.offsets[query], labelled.lengths) + labelled.place - 1
        label = self.labels.grade[at]
        matched = match_labels(lists, doc, labelled, self.labels.doc[at])
        row_data = {name: values[rows] for name, values in self.row_data.items()}
        if SUBTOPICS in self.labels.data:
            row_data[SUBTOPICS] = np.append(self.labels.data[SUBTOPICS][at], NONE)[matched]
        pool = None
        if self.labels.drawn is not None:
            offsets = self.labels.queries.offsets[_find_range(query)]
            pool = QueryPool(queries=Ragged(offsets - offsets[0]), query=query - query[0], row=at - offsets[0])
            row_data["label"] = np.append(pool.row, -1)[matched]
            row_data["shown"] = np.append(self.labels.drawn.shown[at], False)[matched]
        return build_block(
            lists,
            doc,
            take_grades(label, matched),
            labelled,
            label,
            row_data=row_data,
            label_data={name: values[at] for name, values in self.labels.data.items()},
            list_data=list_data,
            pool=pool,
            sets=self.sets,
        )


def _find_range(query: Ints) -> slice:
    """The borders of all queries from the first list's to the last one's; lists come query by query."""
    return slice(int(query[0]), int(query[-1]) + 2)


def collect_lists(
    rankings: TableReader,
    labels: TableReader,
    *,
    queries: TableReader | None = None,
    documents: TableReader | None = None,
    decisions: TableReader | None = None,
    systems: pa.Array | None = None,
    conventions: Conventions,
    draws: LabelDraws | None = None,
) -> ListCollection:
    """Read the tables. Every system gets a list, possibly empty, for every query with labels or in `queries`.

    With `systems`, the tables come from a Spark stage: `system` is an index into these names, `doc_id` may be a hash,
    and rankings and labels hold the columns of their documents. With `draws`, labels have a column `evidence`.
    """
    by_query = [source for source in (rankings, labels, queries, decisions) if source]
    (query, label_query, *other_query), query_ids = _encode_queries(by_query, in_stage=systems is not None)
    doc, label_doc, *catalogue = hash_ids(*[source.ids("doc_id") for source in (rankings, labels, documents) if source])
    described = read_document_columns(rankings, labels) if systems is not None else None
    columns = described or look_up_documents(doc, label_doc, labels, documents, *catalogue)
    by_system = [source for source in (rankings, decisions) if source]
    (system, *decision_system), systems = _encode_systems(by_system, systems)

    label_lists = _read_labels(label_query, query_ids, label_doc, labels, columns.labelled, draws)
    query_row = np.full(len(query_ids), -1)
    if queries:
        query_row[other_query[0]] = np.arange(len(other_query[0]))
    present = np.tile((label_lists.queries.lengths > 0) | (query_row >= 0), (len(systems), 1))
    present[system, query] = True
    if decisions:
        present[decision_system[0], other_query[-1]] = True
    list_query, list_system = np.nonzero(present.T)  # query by query, as the rows of large tables mostly come
    index = np.full(present.shape, -1)
    index[list_system, list_query] = np.arange(len(list_query))

    owner = index[system, query]
    lists = Ragged.of_lengths(np.bincount(owner, minlength=len(list_query)))
    order, tied = order_table(rankings, owner, lists, conventions)
    list_data: dict[str, Array] = {"weight": _read_weights(queries, query_row)[list_query]}
    if decisions:
        list_data |= _read_decisions(decisions, index[decision_system[0], other_query[-1]], len(list_query))
    row_data = columns.ranked
    if order is not None:
        doc, row_data = doc[order], {name: values[order] for name, values in row_data.items()}
    return ListCollection(
        systems=systems,
        queries=query_ids,
        index=index,
        system=list_system,
        query=list_query,
        lists=lists,
        doc=doc,
        row_data=row_data,
        tied=np.zeros(lists.size, dtype=np.int64) if tied is None else lists.counts(tied),
        list_data=list_data,
        labels=label_lists,
        query_row=query_row,
        sets=columns.sets,
    )


def _encode_queries(sources: list[TableReader], *, in_stage: bool) -> tuple[list[Ints], pa.Array]:
    """The query of each row of these tables as a code, and the queries; in a Spark stage they may be codes already."""
    return encode_ids(*[source.ids("query_id", encoded=in_stage) for source in sources])


def order_table(
    rankings: TableReader, owner: Ints, lists: Ragged, conventions: Conventions
) -> tuple[Ints | None, Bools | None]:
    """`order_rows` of a table of rankings; `owner` is the list of each row."""
    keys = build_sort_keys(
        rankings.numbers("rank") if conventions.order == "rank" and rankings.has("rank") else None,
        rankings.numbers("score") if rankings.has("score") else None,
        conventions,
    )

    def rank_ids(rows: Ints) -> Ints:
        text = DOC_TEXT if rankings.has(DOC_TEXT) else "doc_id"
        return order_by_code_point(rankings.ids(text).take(pa.array(rows)))

    return order_rows(owner, lists, keys, rank_ids, conventions)


def _encode_systems(sources: list[TableReader], names: pa.Array | None) -> tuple[list[Ints], pa.Array]:
    """The system of each row of these tables, as an index into the names of systems, and those names."""
    if names is not None:
        return [source.column("system").to_numpy().astype(np.int64) for source in sources], names
    if sources[0].has("system"):
        return encode_ids(*[source.ids("system") for source in sources])
    only = pa.array(["system"], pa.large_string())
    return [np.zeros(len(source.column("query_id")), dtype=np.int64) for source in sources], only


def _read_labels(
    query: Ints,
    query_ids: pa.Array,
    doc: Ints,
    labels: TableReader,
    columns: dict[str, Array],
    draws: LabelDraws | None,
) -> LabelLists:
    """The labels query by query, and of two for a document the higher.

    A label has a grade or, where labels are drawn, evidence.
    """
    grade = labels.numbers("grade")
    if np.isinf(grade).any():
        raise InputError("labels.grade is infinite in some rows", hint="grades are finite numbers")
    if draws is None:
        graded, evidence, best, ties = np.flatnonzero(~np.isnan(grade)), None, grade, None
    else:
        graded, evidence = _read_evidence(labels, grade, draws.layout)
        best, ties = np.where(np.isnan(grade), -np.inf, grade), evidence[draws.tie]
    kept = keep_best_labels(query[graded], len(query_ids), doc[graded], best[graded], ties)
    rows = graded[kept]
    drawn = None
    if draws is not None and evidence is not None:
        hashes = hash_texts(query_ids).view(np.uint64)
        drawn = LabelEvidence(draws, evidence[kept], shown=draws.find_shown(evidence[kept]), query_hash=hashes)
    return LabelLists(
        queries=Ragged.of_lengths(np.bincount(query[rows], minlength=len(query_ids))),
        doc=doc[rows],
        grade=grade[rows],
        data={name: values[rows] for name, values in columns.items()},
        drawn=drawn,
    )


def _read_evidence(labels: TableReader, grade: Floats, layout: np.dtype[np.void]) -> tuple[Ints, Evidence]:
    """The rows that have evidence, and their evidence; every grade must have some."""
    column = labels.column("evidence")
    valid = column.is_valid().to_numpy()
    if (~valid & ~np.isnan(grade)).any():
        raise InputError(f"labels.evidence is empty in {(~valid & ~np.isnan(grade)).sum()} rows that have a grade")
    return np.flatnonzero(valid), unpack_records(column.drop_null(), layout, "labels.evidence")


def _read_weights(queries: TableReader | None, query_row: Ints) -> Floats:
    if queries is None or not queries.has("weight"):
        return np.ones(len(query_row))
    weight = np.append(np.nan_to_num(queries.numbers("weight"), nan=1.0), 1.0)  # the last is for row −1
    return weight[query_row]


def _read_decisions(decisions: TableReader, at: Ints, size: int) -> dict[str, Array]:
    """Per list, its decisions; −1 or NaN where it has none."""
    values: dict[str, Array] = {}
    if decisions.has("expert") and decisions.has("optimal_expert"):
        chosen, best = (decisions.column(name).cast(pa.large_string()) for name in ("expert", "optimal_expert"))
        codes, _ = encode_ids(chosen.fill_null(""), best.fill_null(""))
        for name, column, code in (("expert", chosen, codes[0]), ("optimal_expert", best, codes[1])):
            values[name] = np.full(size, -1, dtype=np.int64)
            values[name][at] = np.where(column.is_null().to_numpy(), -1, code)
    for name in ("retrieved", "retrieval_needed"):
        if decisions.has(name):
            values[name] = np.full(size, np.nan)
            values[name][at] = decisions.numbers(name)
    return values
