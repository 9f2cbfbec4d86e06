"""From whole tables of rankings and labels to blocks, in memory and without a step per query or row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
    system: Ints  # per list
    query: Ints  # per list
    lists: Ragged
    doc: Ints  # per ranked document
    row_data: dict[str, Array]
    tied: Ints  # per list
    list_data: dict[str, Array]
    labels: Labels

    def blocks(self) -> Iterator[tuple[Block, Ints]]:
        """The lists as blocks bounded in memory, each with the number of duplicates per list."""
        labelled = self.labels.queries.lengths[self.query]
        for part in Ragged.of_lengths(self.lists.lengths + labelled).slices(ROWS_PER_BLOCK):
            yield self._block(part)

    def _block(self, part: slice) -> tuple[Block, Ints]:
        rows = slice(self.lists.offsets[part.start], self.lists.offsets[part.stop])
        lists = Ragged(self.lists.offsets[part.start : part.stop + 1] - rows.start)
        query, doc = self.query[part], self.doc[rows]
        labelled = Ragged.of_lengths(self.labels.queries.lengths[query])
        at = np.repeat(self.labels.queries.offsets[query], labelled.lengths) + labelled.place - 1
        label_doc, label = self.labels.doc[at], self.labels.grade[at]
        return assemble(
            lists,
            lists.place,
            doc,
            match(lists, doc, labelled, label_doc, label),
            labelled,
            label,
            row_data={name: values[rows] for name, values in self.row_data.items()},
            label_data={name: values[at] for name, values in self.labels.data.items()},
            list_data={name: values[part] for name, values in self.list_data.items()},
        )


def collect(
    rankings: Source,
    labels: Source,
    *,
    queries: Source | None,
    documents: Source | None,
    decisions: Source | None,
    conventions: Conventions,
) -> Collected:
    """Read the tables. Every system gets a list, empty at need, for every query that is labelled or listed."""
    others = [source for source in (queries, decisions) if source]
    (query, label_query, *asked), query_ids = encode(*[s.ids("query_id") for s in (rankings, labels, *others)])
    doc_ids = [source.ids("doc_id") for source in (rankings, labels, documents) if source]
    doc, label_doc, *known = identify(*doc_ids)
    described = _described(documents, known[0]) if documents else {}
    named = [source for source in (rankings, decisions) if source]
    if rankings.has("system"):
        (system, *deciding), systems = encode(*[s.ids("system") for s in named])
    else:
        system, *deciding = (np.zeros(len(codes), dtype=np.int64) for codes in (query, *asked[-1:]))
        systems = pa.array(["system"], pa.large_string())

    read = _labels(label_query, label_doc, labels.numbers("grade"), len(query_ids), described)
    present = np.zeros((len(systems), len(query_ids)), dtype=np.bool_)
    present[:, np.flatnonzero(read.queries.lengths)] = True
    if queries:
        present[:, asked[0]] = True
    present[system, query] = True
    if decisions:
        present[deciding[0], asked[-1]] = True
    list_of = np.cumsum(present.ravel()) - 1
    list_system, list_query = np.nonzero(present)

    owner = list_of[system * len(query_ids) + query]
    order, tied = _order(rankings, owner, doc_ids[0], conventions)
    doc = doc if order is None else doc[order]
    lists = Ragged.of_lengths(np.bincount(owner, minlength=len(list_query)))
    list_data: dict[str, Array] = {"weight": _weights(queries, asked, len(query_ids))[list_query]}
    if decisions:
        list_data |= _decided(decisions, list_of[deciding[0] * len(query_ids) + asked[-1]], len(list_query))
    collected = Collected(
        systems,
        query_ids,
        list_system,
        list_query,
        lists,
        doc,
        {name: look_up(doc) for name, look_up in described.items()},
        np.zeros(lists.size, dtype=np.int64) if tied is None else lists.counts(tied),
        list_data,
        read,
    )
    if conventions.ties == "error" and collected.tied.any():
        raise DataQualityError(_example(collected, collected.tied, "documents at the same place"))
    return collected


def _labels(query: Ints, doc: Ints, grade: Floats, queries: int, described: Mapping[str, LookUp]) -> Labels:
    """The labels query by query; an empty grade is no label, and of two for a document the higher counts."""
    if np.isinf(grade).any():
        raise InputError("labels.grade is infinite in some rows", hint="grades are finite numbers")
    if np.isnan(grade).any():
        kept = ~np.isnan(grade)
        query, doc, grade = query[kept], doc[kept], grade[kept]
    if (query[1:] < query[:-1]).any():
        order = np.argsort(query, kind="stable")
        query, doc, grade = query[order], doc[order], grade[order]
    lists = Ragged.of_lengths(np.bincount(query, minlength=queries))
    best = best_labels(lists, doc, grade)
    if not best.all():
        lists, doc, grade = lists.keep(best), doc[best], grade[best]
    return Labels(lists, doc, grade, {name: look_up(doc) for name, look_up in described.items()})


def _order(
    rankings: Source, owner: Ints, doc_ids: pa.ChunkedArray, conventions: Conventions
) -> tuple[Ints | None, Bools | None]:
    """The rows list by list, best first, None if they are so already; and which are tied with the one before."""
    keys = _keys(rankings, conventions)
    if _ascending(owner, keys):
        return None, None
    if len(keys) == 1 and (owner[1:] >= owner[:-1]).all():
        order = Ragged.of_lengths(np.bincount(owner)).argsort(keys[0])
    else:
        order = np.lexsort((*reversed(keys), owner))
    tied = np.zeros(len(owner), dtype=np.bool_)
    tied[1:] = np.logical_and.reduce([key[order][1:] == key[order][:-1] for key in (owner, *keys)])
    if not tied.any():
        return order, None
    # Only documents that are tied need their ids compared; sorting all ids would cost more than the rest.
    involved = np.flatnonzero(tied | np.append(tied[1:], False))
    run = np.cumsum(~tied)[involved]
    place = by_code_point(doc_ids.take(pa.array(order[involved])))
    order[involved] = order[involved][np.lexsort((place if conventions.ties == "doc_id_asc" else -place, run))]
    return order, tied


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
    return [np.where(np.isnan(key), np.inf, key) if np.isnan(key).any() else key for key in keys]


def _ascending(owner: Ints, keys: list[Floats]) -> bool:
    """Whether the rows stand list by list and best first already, with no two at the same place."""
    after = owner[1:] > owner[:-1]
    same = owner[1:] == owner[:-1]
    for key in keys:
        after |= same & (key[1:] > key[:-1])
        same &= key[1:] == key[:-1]
    return bool(after.all())


def _weights(queries: Source | None, asked: list[Ints], size: int) -> Floats:
    weight = np.ones(size)
    if queries and queries.has("weight"):
        weight[asked[0]] = np.nan_to_num(queries.numbers("weight"), nan=1.0)
    return weight


def _described(documents: Source, doc: Ints) -> dict[str, LookUp]:
    """What is known of documents: their category as a code, and their share of the catalogue's popularity."""
    order = np.argsort(doc, kind="stable")
    ordered = doc[order]

    def by_document(values: Array, unknown: float) -> LookUp:
        def look_up(wanted: Ints) -> Array:
            if not len(ordered):
                return np.full(len(wanted), unknown, dtype=values.dtype)
            at = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
            return np.where(ordered[at] == wanted, values[order[at]], values.dtype.type(unknown))

        return look_up

    described = {}
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
