"""From whole tables of rankings and labels to blocks, in memory and without a step per query or row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from schemas.errors import ConfigurationError, DataQualityError, InputError
from udfs.block import Array, Block
from udfs.conventions import Conventions
from udfs.lists import assemble
from udfs.match import best_labels, match
from udfs.ragged import Bools, Floats, Ints, Ragged
from udfs.tables import Source, by_code_point, encode, identify

LookUp = Callable[[Ints], Array]

DESCRIBED = ("category", "popularity")  # of a document; the category as a number, −1 where it has none
ROWS_PER_BLOCK = 1 << 17  # bounds the memory, and keeps what the metrics share in the processor's cache


@dataclass(frozen=True, eq=False)
class Labels:
    """All labels, query by query: one grade for each query and document."""

    queries: Ragged
    doc: Ints
    grade: Floats
    data: dict[str, Array]


@dataclass(frozen=True, eq=False)
class Collected:
    """Every list of every system, ordered best document first, and the labels of every query."""

    systems: pa.Array
    queries: pa.Array
    index: Ints  # per system and query, the number of its list; −1 where there is none
    system: Ints  # per list
    query: Ints  # per list
    lists: Ragged
    doc: Ints  # per ranked document
    row_data: dict[str, Array]
    tied: Ints  # per list
    list_data: dict[str, Array]
    labels: Labels
    listed: Ints  # per query, its last row in the table of queries; −1 where that has none

    def checked(self, conventions: Conventions) -> Collected:
        """This, unless lists have ties and the conventions allow none."""
        if conventions.ties == "error" and self.tied.any():
            raise DataQualityError(_example(self, self.tied, "documents at the same place"))
        return self

    def blocks(self) -> Iterator[tuple[slice, Block, Ints]]:
        """The lists as blocks bounded in memory, each with which lists it holds and their numbers of duplicates."""
        labelled = self.labels.queries.lengths[self.query]
        for part in Ragged.of_lengths(self.lists.lengths + labelled).slices(ROWS_PER_BLOCK):
            rows = slice(self.lists.offsets[part.start], self.lists.offsets[part.stop])
            lists = Ragged(self.lists.offsets[part.start : part.stop + 1] - rows.start)
            decided = {name: values[part] for name, values in self.list_data.items()}
            yield part, *self._assembled(lists, rows, self.query[part], decided)

    def of(self, system: int, query: Ints) -> Block:
        """The lists of a system for these queries as a block, one for each, empty where there is none."""
        wanted = self.index[system, query]
        lists = Ragged.of_lengths(np.where(wanted < 0, 0, self.lists.lengths[wanted]))
        rows = np.repeat(self.lists.offsets[wanted], lists.lengths) + lists.place - 1
        return self._assembled(lists, rows, query, {})[0]

    def _assembled(
        self, lists: Ragged, rows: slice | Ints, query: Ints, list_data: dict[str, Array]
    ) -> tuple[Block, Ints]:
        doc = self.doc[rows]
        labelled = Ragged.of_lengths(self.labels.queries.lengths[query])
        at = np.repeat(self.labels.queries.offsets[query], labelled.lengths) + labelled.place - 1
        label_doc, label = self.labels.doc[at], self.labels.grade[at]
        return assemble(
            lists,
            doc,
            match(lists, doc, labelled, label_doc, label),
            labelled,
            label,
            row_data={name: values[rows] for name, values in self.row_data.items()},
            label_data={name: values[at] for name, values in self.labels.data.items()},
            list_data=list_data,
        )


def collect(
    rankings: Source,
    labels: Source,
    *,
    queries: Source | None = None,
    documents: Source | None = None,
    decisions: Source | None = None,
    systems: pa.Array | None = None,
    conventions: Conventions,
) -> Collected:
    """Read the tables. Every system gets a list, empty at need, for every query that is labelled or listed.

    Where `systems` names them all, the tables come prepared: `system` holds a place among the names, and what is known
    of documents stands in their rows.
    """
    others = [source for source in (queries, decisions) if source]
    (query, label_query, *asked), query_ids = encode(*[s.ids("query_id") for s in (rankings, labels, *others)])
    beside = () if systems is None else DESCRIBED
    doc, label_doc, *known = identify(*[source.ids("doc_id") for source in (rankings, labels, documents) if source])
    described = _described(documents, known[0]) if documents else {}
    (system, *deciding), systems = _systems([source for source in (rankings, decisions) if source], systems)

    read = _labels(label_query, label_doc, labels, len(query_ids), described, beside)
    listed = np.full(len(query_ids), -1)
    if queries:
        listed[asked[0]] = np.arange(len(asked[0]))
    present = np.tile((read.queries.lengths > 0) | (listed >= 0), (len(systems), 1))
    present[system, query] = True
    if decisions:
        present[deciding[0], asked[-1]] = True
    list_query, list_system = np.nonzero(present.T)  # query by query, as the rows of large tables mostly come
    index = np.full(present.shape, -1)
    index[list_system, list_query] = np.arange(len(list_query))

    owner = index[system, query]
    lists = Ragged.of_lengths(np.bincount(owner, minlength=len(list_query)))
    order, tied = _order(rankings, owner, lists, conventions)
    list_data: dict[str, Array] = {"weight": _weights(queries, listed)[list_query]}
    if decisions:
        list_data |= _decided(decisions, index[deciding[0], asked[-1]], len(list_query))
    doc = doc if order is None else doc[order]
    stated = _columns(rankings, beside)
    row_data = stated if order is None else {name: values[order] for name, values in stated.items()}
    return Collected(
        systems,
        query_ids,
        index,
        list_system,
        list_query,
        lists,
        doc,
        row_data | {name: look_up(doc) for name, look_up in described.items()},
        np.zeros(lists.size, dtype=np.int64) if tied is None else lists.counts(tied),
        list_data,
        read,
        listed,
    )


def _systems(sources: list[Source], names: pa.Array | None) -> tuple[list[Ints], pa.Array]:
    """Whose each row of these tables is, as a place among the names of systems, and those names."""
    if names is not None:
        return [source.column("system").to_numpy().astype(np.int64) for source in sources], names
    if sources[0].has("system"):
        return encode(*[source.ids("system") for source in sources])
    only = pa.array(["system"], pa.large_string())
    return [np.zeros(len(source.column("query_id")), dtype=np.int64) for source in sources], only


def _labels(
    query: Ints, doc: Ints, labels: Source, queries: int, described: Mapping[str, LookUp], beside: Sequence[str]
) -> Labels:
    """The labels query by query; an empty grade is no label, and of two for a document the higher counts."""
    grade, data = labels.numbers("grade"), _columns(labels, beside)
    if np.isinf(grade).any():
        raise InputError("labels.grade is infinite in some rows", hint="grades are finite numbers")
    told = np.flatnonzero(~np.isnan(grade))
    rows = told[best_labels(query[told], queries, doc[told], grade[told])]
    lists = Ragged.of_lengths(np.bincount(query[rows], minlength=queries))
    doc, data = doc[rows], {name: values[rows] for name, values in data.items()}
    return Labels(lists, doc, grade[rows], data | {name: look_up(doc) for name, look_up in described.items()})


def _columns(source: Source, names: Sequence[str]) -> dict[str, Array]:
    return {name: source.column(name).to_numpy() for name in names if source.has(name)}


def _order(rankings: Source, owner: Ints, lists: Ragged, conventions: Conventions) -> tuple[Ints | None, Bools | None]:
    """The rows list by list, best first, None if they are so already; and which are tied with the one before."""
    keys = _keys(rankings, conventions)
    if _ascending(owner, keys):
        return None, None
    order = _by_place(owner, lists, keys[0])
    if order is not None:
        return order, None
    if len(keys) == 1 and (owner[1:] >= owner[:-1]).all():
        order = lists.argsort(keys[0])
    else:
        order = np.lexsort((*reversed(keys), owner))
    tied = np.zeros(len(owner), dtype=np.bool_)
    tied[1:] = np.logical_and.reduce([key[order][1:] == key[order][:-1] for key in (owner, *keys)])
    if not tied.any():
        return order, None
    # Only documents that are tied need their ids compared; sorting all ids would cost more than the rest.
    involved = np.flatnonzero(tied | np.append(tied[1:], False))
    run = np.cumsum(~tied)[involved]
    place = by_code_point(rankings.ids("doc_id").take(pa.array(order[involved])))
    order[involved] = order[involved][np.lexsort((place if conventions.ties == "doc_id_asc" else -place, run))]
    return order, tied


def _by_place(owner: Ints, lists: Ragged, key: Floats) -> Ints | None:
    """The rows list by list where each list's keys are just 0..n-1 or 1..n, and so need no sorting; else None."""
    with np.errstate(invalid="ignore"):
        place = key - key.min()
    if (place >= lists.lengths[owner]).any() or (place != np.floor(place)).any():
        return None
    order = np.full(lists.rows, -1)
    order[lists.offsets[owner] + place.astype(np.int64)] = np.arange(lists.rows)
    return order if (order >= 0).all() else None


def _keys(rankings: Source, conventions: Conventions) -> list[Floats]:
    """What orders a list, most important first, smallest first; where a key is empty, last."""
    keys = []
    if conventions.order == "rank" and rankings.has("rank"):
        keys.append(rankings.numbers("rank"))
    # Where ranks repeat, as in runs whose ranks are all 0, scores decide before doc_ids do.
    if rankings.has("score"):
        score = -rankings.numbers("score")
        if conventions.order == "score_float32":
            with np.errstate(over="ignore"):
                score = score.astype(np.float32).astype(np.float64)
        keys.append(score)
    if not keys:
        wanted = "score" if conventions.order != "rank" else "rank or a score"
        raise ConfigurationError(f"rankings has no {wanted}", hint="the order of its rows says nothing")
    missing = np.logical_and.reduce([np.isnan(key) for key in keys])
    if missing.any():
        raise InputError(f"rankings has {missing.sum()} rows with neither rank nor score", hint="fill or drop them")
    empty = [np.isnan(key) for key in keys]
    return [np.where(gap, np.inf, key) for key, gap in zip(keys, empty, strict=True) if not gap.all()] or keys


def _ascending(owner: Ints, keys: list[Floats]) -> bool:
    """Whether the rows stand list by list and best first already, with no two at the same place."""
    after = owner[1:] > owner[:-1]
    same = owner[1:] == owner[:-1]
    for key in keys:
        after |= same & (key[1:] > key[:-1])
        same &= key[1:] == key[:-1]
    return bool(after.all())


def _weights(queries: Source | None, listed: Ints) -> Floats:
    if queries is None or not queries.has("weight"):
        return np.ones(len(listed))
    weight = np.append(np.nan_to_num(queries.numbers("weight"), nan=1.0), 1.0)  # the last is for those not listed
    return weight[listed]


def _described(documents: Source, doc: Ints) -> dict[str, LookUp]:
    """What is known of documents: their place in the catalogue, category as a code, and share of its popularity."""
    order = np.argsort(doc, kind="stable")
    ordered = doc[order]

    def by_document(values: Array, unknown: float) -> LookUp:
        def look_up(wanted: Ints) -> Array:
            if not len(ordered):
                return np.full(len(wanted), unknown, dtype=values.dtype)
            at = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
            return np.where(ordered[at] == wanted, values[order[at]], values.dtype.type(unknown))

        return look_up

    described = {"catalogue": by_document(np.arange(len(doc)), -1)}
    if documents.has("category"):
        described["category"] = by_document(_codes(documents, "category"), -1)
    if documents.has("popularity"):
        popularity = documents.numbers("popularity")
        described["popularity"] = by_document(popularity / np.nansum(popularity), np.nan)
    return described


def _decided(decisions: Source, at: Ints, size: int) -> dict[str, Array]:
    """Per list, the decisions taken for it; −1 or NaN where none is known."""
    decided: dict[str, Array] = {}
    if decisions.has("expert") and decisions.has("optimal_expert"):
        chosen, best = (decisions.column(name).cast(pa.large_string()) for name in ("expert", "optimal_expert"))
        codes, _ = encode(chosen.fill_null(""), best.fill_null(""))
        for name, column, code in (("expert", chosen, codes[0]), ("optimal_expert", best, codes[1])):
            decided[name] = np.full(size, -1, dtype=np.int64)
            decided[name][at] = np.where(column.is_null().to_numpy(), -1, code)
    for name in ("retrieved", "retrieval_needed"):
        if decisions.has(name):
            decided[name] = np.full(size, np.nan)
            decided[name][at] = decisions.numbers(name)
    return decided


def _codes(source: Source, column: str) -> Ints:
    values = source.column(column)
    (codes,), _ = encode(values.drop_null())
    filled = np.full(len(values), -1, dtype=np.int64)
    filled[values.is_valid().to_numpy()] = codes
    return filled


def _example(collected: Collected, counts: Ints, what: str) -> str:
    at = int(np.argmax(counts > 0))
    where = f"{collected.systems[collected.system[at]]}, query {collected.queries[collected.query[at]]}"
    return f"{int((counts > 0).sum())} lists have {what}, {where} for one"
