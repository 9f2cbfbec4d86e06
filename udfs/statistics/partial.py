"""Partial sums of one partition, for `DataFrame.mapInArrow`: small, whatever the number of queries.

Rows of one query may be in two partitions. Complete queries are summed in place; the other rows are shuffled by query
and summed then. So the large table is never shuffled.

Sums have the same bits for any partitions and order: every number is split into a multiple of `LARGE` (weights and
their squares are large), a multiple of 1/`GRID` and a rest. Sums of the multiples are exact, and the rounding of the
sum of the rests is far below the last bit of the total.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from udfs.ragged import Bools, Floats, Ints
from udfs.registry import POOL
from udfs.spark.worker import read_ahead
from udfs.statistics.counting import RETRIEVED, has_enough_judged, has_too_little_judged
from udfs.statistics.features import (
    OF_PAIR,
    OF_SYSTEM,
    Columns,
    add_products,
    build_pair_columns,
    build_system_columns,
    expand_sum,
    weigh_columns,
)
from udfs.statistics.frame import QUERY, Frame, build_frame, has_every_system
from udfs.statistics.label_draws import build_evidence_columns, fill_draws, sum_label_draws
from udfs.statistics.plan import Plan
from udfs.statistics.resample import Hashes, draw_poisson_weights, draw_signs

Batches = Iterable[pa.RecordBatch]
Key = tuple[int, int, str]  # subject (systems, then pairs), cut, value
Layout = tuple[tuple[str, int], ...]  # names of columns side by side, and how many metrics each holds

PARTIALS = pa.schema(
    [
        ("route", pa.int64()),  # the shuffle key
        ("subject", pa.int32()),
        ("cut", pa.int32()),
        ("value", pa.string()),
        ("sums", pa.binary()),  # 3 × metrics × sums as raw float64; empty except in the first row of a key
        ("draws", pa.binary()),  # metrics × replicates, one kind of draw after the other, labels last, in pieces
        ("at", pa.int32()),  # the offset of the piece
        ("rest", pa.binary()),  # rows of incomplete queries, as an Arrow stream
    ]
)
PARTIALS_DDL = "route bigint, subject int, cut int, value string, sums binary, draws binary, at int, rest binary"
LARGE = 16.0  # sums of its multiples are exact below 2^57
GRID = 2.0**26  # sums of multiples of 1/GRID are exact below 2^27: 16 million numbers of at most LARGE/2
_LARGE_PART = " (large part)"  # of the name of a column
# Spark bounds batches by rows, so no row may be large: draws per piece, and rows per `rest`.
_PIECE = 8192
_ROWS_PER_REST = 128
_ROWS_PER_PIECE, _ROWS_WITH_DRAWS = 1 << 17, 1 << 14
_QUERIES_PER_CHUNK = 2048  # keeps the columns of a chunk near the processor
_ROUTES = 64
_ROWS_PER_BATCH = 64


@dataclass
class Sums:
    """Running sums of one key: those of large parts, of multiples of the grid and of the rests."""

    sums: Floats  # 3 × metrics × sums; of a chunk, cells × all columns twice
    draws: Floats

    def add(self, sums: Floats, draws: Floats) -> None:
        self.sums += sums
        self.draws += draws


class Scratch:
    """A reusable buffer for intermediate arrays: allocating takes longer than filling."""

    def __init__(self) -> None:
        self._memory = np.empty(0)

    def array(self, rows: int, columns: int) -> Floats:
        """An array that is valid until the next call."""
        if len(self._memory) < rows * columns:
            self._memory = np.empty(rows * columns)
        return self._memory[: rows * columns].reshape(rows, columns)


Totals = dict[Key, Sums]
Place = tuple[int, int, Layout]  # subject, cut, and how the sums are laid out
K = TypeVar("K")


def partial_sums(plan: Plan, *, whole: bool) -> Callable[[Batches], Batches]:
    """The function from rows to partials; `whole` promises that no unit is split between partitions."""

    def run(batches: Batches) -> Batches:
        totals: Totals = {}
        incomplete: list[pa.Table] = []  # rows of queries that were not complete in a piece
        rows = _ROWS_WITH_DRAWS if plan.draw_sets else _ROWS_PER_PIECE
        for table in _read_pieces(read_ahead(batches), None if whole else rows):
            here, elsewhere = (table, None) if whole or not plan.pairs else _split_complete(table, plan)
            if elsewhere is not None:
                incomplete.append(elsewhere)
            if here.num_rows:
                add_frame(build_frame(here, plan), plan, totals)
        if incomplete:
            here, elsewhere = _split_complete(pa.concat_tables(incomplete), plan)
            if here.num_rows:
                add_frame(build_frame(here, plan), plan, totals)
            if elsewhere is not None:
                yield from _emit_rest(elsewhere)
        yield from emit_partials(totals)

    return run


def _read_pieces(batches: Batches, rows: int | None) -> Iterator[pa.Table]:
    """The batches as tables of about `rows` rows, which stay in the processor's cache; or as one table."""
    buffer: list[pa.RecordBatch] = []
    for batch in batches:
        buffer.append(batch)
        if rows is not None and sum(map(len, buffer)) >= rows:
            yield pa.Table.from_batches(buffer)
            buffer = []
    if any(map(len, buffer)):
        yield pa.Table.from_batches(buffer)


def _split_complete(table: pa.Table, plan: Plan) -> tuple[pa.Table, pa.Table | None]:
    """The rows of complete queries, with every system here, and the others."""
    here = has_every_system(table, plan)
    if here.all():
        return table, None
    return table.filter(pa.array(here)), table.filter(pa.array(~here))


def merge_partials(plan: Plan) -> Callable[[Batches], Batches]:
    """The function that merges partials by key, and sums the rows among them."""
    return lambda batches: emit_partials(merge_totals(batches, plan))


def merge_totals(batches: Batches, plan: Plan) -> Totals:
    """The totals of these partials by key, and of the rows among them."""
    totals, rest = collect_partials(batches)
    if rest:
        add_frame(build_frame(pa.concat_tables(rest), plan), plan, totals)
    return totals


def collect_partials(batches: Batches) -> tuple[Totals, list[pa.Table]]:
    """The totals of these partials by key, and the rows among them that are still to be summed."""
    pieces: dict[tuple[Key, int], Sums] = {}
    rest: list[pa.Table] = []
    for batch in batches:
        rest += [pa.ipc.open_stream(blob).read_all() for blob in batch["rest"].drop_null().to_pylist()]
        of_keys = batch.filter(batch["rest"].is_null()).to_pydict()
        keys = zip(of_keys["subject"], of_keys["cut"], of_keys["value"], strict=True)
        for key, at, sums, draws in zip(keys, of_keys["at"], of_keys["sums"], of_keys["draws"], strict=True):
            _add_to(pieces, (key, at), Sums(np.frombuffer(sums).reshape(3, -1), np.frombuffer(draws)))
    return _join_pieces(pieces), rest


def _join_pieces(pieces: Mapping[tuple[Key, int], Sums]) -> Totals:
    """The totals of each key from its pieces, whatever their order."""
    by_key: dict[Key, list[Sums]] = {}
    for key, at in sorted(pieces):
        by_key.setdefault(key, []).append(pieces[key, at])
    return {
        key: Sums(of_key[0].sums, np.concatenate([piece.draws for piece in of_key])) for key, of_key in by_key.items()
    }


def add_frame(frame: Frame, plan: Plan, totals: Totals) -> Totals:
    """`totals` with the queries of a frame added."""
    running: dict[Place, Sums] = {}
    scratch = Scratch()
    for part in frame.chunks(_QUERIES_PER_CHUNK):
        for place, sums in (_sum_by_unit if plan.clustered else _sum_by_query)(frame, part, plan, scratch):
            _add_to(running, place, sums)
    for (subject, cut, layout), whole in running.items():
        names = OF_SYSTEM if subject < len(plan.systems) else OF_PAIR
        sums_of = _expand_layout(whole.sums, layout, names, plan)
        for at, value in enumerate(frame.cells[cut]):
            _add_to(totals, (subject, cut, value), Sums(sums_of[at], whole.draws[at]))
    return totals


def _sum_by_query(frame: Frame, part: slice, plan: Plan, scratch: Scratch) -> Iterator[tuple[Place, Sums]]:
    """The sums of some queries by cell, where every query is a unit: all cuts at once."""
    bases, of_labels = _build_columns(frame, part, plan)
    draws = _draw_replicates(frame.unit[part], plan)
    codes, cells = [codes[part] for codes in frame.codes], [len(names) for names in frame.cells]
    segmented = len(codes) > 1  # then the sums over everything come from the cells of one cut
    member = _build_membership(codes[segmented:], cells[segmented:])
    borders = np.cumsum(cells[segmented:])[:-1]
    replicated = [_sum_replicates(cell, size, bases, draws, plan) for cell, size in zip(codes, cells, strict=True)]
    for subject, base in enumerate(bases):
        layout, stacked = _stack_columns(add_products(base, clustered=False), scratch)
        sums = np.split(member @ stacked, borders)
        for cut, of_cut in enumerate([sums[0].sum(axis=0, keepdims=True), *sums] if segmented else sums):
            yield (subject, cut, layout), Sums(of_cut, _join_draws(replicated[cut][subject], of_labels, cut, subject))


def _sum_by_unit(frame: Frame, part: slice, plan: Plan, scratch: Scratch) -> Iterator[tuple[Place, Sums]]:
    """The sums of some queries by cell, where a unit has several queries: units are merged per cut."""
    bases, of_labels = _build_columns(frame, part, plan)
    draws = _draw_replicates(frame.unit[part], plan)
    for cut, codes in enumerate(frame.codes):
        cell, merged, unit_draws = _merge_units(codes[part], frame.unit[part], bases, draws)
        size = len(frame.cells[cut])
        member, replicated = _build_membership([cell], [size]), _sum_replicates(cell, size, merged, unit_draws, plan)
        for subject, base in enumerate(merged):
            layout, stacked = _stack_columns(add_products(base, clustered=True), scratch)
            sums_of_draws = _join_draws(replicated[subject], of_labels, cut, subject)
            yield (subject, cut, layout), Sums(member @ stacked, sums_of_draws)


def _join_draws(replicates: Floats, of_labels: list[list[Floats]], cut: int, subject: int) -> Floats:
    """The sums of replicates and, where labels are drawn, of their draws, side by side."""
    return np.concatenate((replicates, of_labels[cut][subject]), axis=1) if of_labels else replicates


def _add_to(totals: dict[K, Sums], key: K, addend: Sums) -> None:
    if key in totals:
        totals[key].add(addend.sums, addend.draws)
    else:
        totals[key] = Sums(addend.sums.copy(), addend.draws.copy())


def _build_columns(frame: Frame, part: slice, plan: Plan) -> tuple[list[Columns], list[list[Floats]]]:
    """The columns to sum, per query: for each system, then for each pair; and the sums over drawn labels, by cut."""
    metrics, pools = slice(len(plan.metrics)), [plan.numbers.index(plan.metrics[at] + POOL) for at in plan.with_pool]
    numbers = [frame.numbers(system, part) for system in range(len(plan.systems))]
    values = [np.ascontiguousarray(of_system[:, metrics]) for of_system in numbers]
    enough, too_little = zip(*[_mask_judged(of_system, plan) for of_system in numbers], strict=True)
    weight = frame.weight[part]
    bases = []
    for system, of_system in enumerate(numbers):
        exists = (frame.at[system, part] >= 0).astype(np.float64)
        pool = of_system[:, pools]
        bases.append(build_system_columns(values[system], enough[system], exists, weight, pool, plan.with_pool))
    draws = fill_draws(frame, part, numbers, plan) if plan.draw_sets else []
    for pair in plan.pairs:
        b, c = (plan.systems.index(name) for name in pair)
        both, either = enough[b] & enough[c], too_little[b] | too_little[c]
        base = build_pair_columns(values[b], values[c], weight, both, either, flipped=plan.randomisation > 0)
        bases.append(base | build_evidence_columns(base, (b, c), numbers, draws, plan) if draws else base)
    if plan.by_traffic:
        bases = [weigh_columns(base, weight) for base in bases]
    codes, cells = [codes[part] for codes in frame.codes], [len(names) for names in frame.cells]
    return bases, sum_label_draws(codes, cells, bases, draws, plan) if draws else []


def _mask_judged(numbers: Floats, plan: Plan) -> tuple[Bools, Bools]:
    """Per query and metric, whether enough of the system's list is judged, and whether too little is."""
    enough = np.ones((len(numbers), len(plan.metrics) if any(plan.judged) else 1), dtype=bool)
    too_little = np.zeros_like(enough)
    for metric, name in enumerate(plan.judged):
        if name is not None:
            share, retrieved = (numbers[:, plan.numbers.index(n)] for n in (name, RETRIEVED))
            enough[:, metric] = has_enough_judged(share, retrieved, plan.min_judged)
            too_little[:, metric] = has_too_little_judged(share, retrieved, plan.min_judged)
    return enough, too_little


def _build_membership(codes: list[Ints], cells: list[int]) -> Any:
    """A sparse 0/1 matrix, cells of all cuts × rows: its product with columns sums them by cell."""
    rows = len(codes[0])
    starts = np.concatenate(([0], np.cumsum(cells)))
    places = np.stack(codes, axis=1) + starts[:-1]
    pointers = np.arange(0, places.size + 1, len(codes))
    return sparse.csc_matrix((np.ones(places.size), places.ravel(), pointers), shape=(starts[-1], rows))


def _stack_columns(columns: Columns, scratch: Scratch) -> tuple[Layout, Floats]:
    """The columns in one array, row-major, first rounded to the grid and then what is left of them; and its layout."""
    columns = _split_large(columns)
    layout = tuple((name, values.shape[1]) for name, values in columns.items())
    width = sum(width for _, width in layout)
    stacked = scratch.array(len(next(iter(columns.values()))), 2 * width)
    rounded, rest = stacked[:, :width], stacked[:, width:]
    np.concatenate(list(columns.values()), axis=1, out=rest)
    np.multiply(rest, GRID, out=rounded)
    np.rint(rounded, out=rounded)
    rounded /= GRID
    rest -= rounded
    return layout, stacked


def _split_large(columns: Columns) -> Columns:
    """The columns, those with large numbers as two: a multiple of `LARGE`, and the difference, which is exact."""
    split: Columns = {}
    for name, values in columns.items():
        split[name] = values
        if values.max(initial=0.0) > LARGE / 2 or values.min(initial=0.0) < -LARGE / 2:
            large = np.rint(values / LARGE) * LARGE
            split |= {name: values - large, name + _LARGE_PART: large}
    return split


def _merge_units(
    cell: Ints, unit: Hashes, bases: list[Columns], draws: list[Floats]
) -> tuple[Ints, list[Columns], list[Floats]]:
    """Rows of the same unit and cell added up; they share their draws."""
    order = np.lexsort((cell, unit))
    cell, unit = cell[order], unit[order]
    starts = np.flatnonzero(np.concatenate(([True], (cell[1:] != cell[:-1]) | (unit[1:] != unit[:-1]))))
    merged = [{name: np.add.reduceat(values[order], starts, axis=0) for name, values in b.items()} for b in bases]
    return cell[starts], merged, [of_unit[order[starts]] for of_unit in draws]


def _expand_layout(by_cell: Floats, layout: Layout, names: tuple[str, ...], plan: Plan) -> Floats:
    """Cells × 3 × (metrics × names): large parts, multiples of the grid, rests; omitted columns are filled in."""
    borders = np.cumsum([width for _, width in layout])[:-1]
    columns = [name for name, _ in layout]
    rounded, rest = (
        dict(zip(columns, np.split(half, borders, axis=1), strict=True)) for half in np.split(by_cell, 2, axis=1)
    )
    large = {name: rounded.get(name + _LARGE_PART, np.zeros_like(values)) for name, values in rounded.items()}
    parts = [
        np.stack([expand_sum(name, sums, len(plan.metrics), plan.with_pool) for name in names], axis=2)
        for sums in (large, rounded, rest)
    ]
    return np.stack(parts, axis=1).reshape(len(by_cell), len(parts), -1)


def _draw_replicates(unit: Hashes, plan: Plan) -> list[Floats]:
    """Units × replicates: bootstrap weights and sign flips; without columns where the plan has none."""
    weights = draw_poisson_weights(unit, plan.bootstrap, plan.seed).astype(np.float64)
    return [weights, draw_signs(unit, plan.randomisation, plan.seed).astype(np.float64)]


def _sum_replicates(cell: Ints, cells: int, bases: list[Columns], draws: list[Floats], plan: Plan) -> list[Floats]:
    """Per subject, cells × the replicates' sums: y and x of the bootstrap, then, for pairs, y of the sign flips."""
    subjects, systems = len(bases), len(plan.systems)
    weighed = np.zeros((subjects, cells, 2 * len(plan.metrics) * plan.bootstrap))
    flipped = np.zeros((subjects - systems, cells, len(plan.metrics) * plan.randomisation))
    if plan.bootstrap or plan.randomisation:
        order = np.argsort(cell, kind="stable")
        borders = np.searchsorted(cell[order], np.arange(cells + 1))
        wide = (len(cell), len(plan.metrics))
        both = np.concatenate([np.broadcast_to(base[n], wide) for base in bases for n in ("y", "x")], axis=1)[order]
        delta = both[:, 2 * systems * len(plan.metrics) :].reshape(len(cell), -1, 2, len(plan.metrics))[:, :, 0]
        delta = delta.reshape(len(cell), -1)
        weights, flips = (of_unit[order] for of_unit in draws)
        for at in np.flatnonzero(np.diff(borders)):
            rows = slice(borders[at], borders[at + 1])
            weighed[:, at] = (both[rows].T @ weights[rows]).reshape(subjects, -1)
            flipped[:, at] = (delta[rows].T @ flips[rows]).reshape(subjects - systems, -1)
    none = np.zeros((cells, 0))
    rest = [none] * systems + list(flipped)
    return [np.concatenate((w, f), axis=1) for w, f in zip(weighed, rest, strict=True)]


def emit_partials(totals: Totals) -> Batches:
    """Totals as batches of partials."""
    rows = [(key, at) for key, whole in totals.items() for at in range(0, max(len(whole.draws), 1), _PIECE)]
    for start in range(0, len(rows), _ROWS_PER_BATCH):
        some = rows[start : start + _ROWS_PER_BATCH]
        subject, cut, value = zip(*[key for key, _ in some], strict=True)
        columns = [
            pa.array([_choose_route(key[1], key[2]) for key, _ in some], pa.int64()),
            pa.array(subject, pa.int32()),
            pa.array(cut, pa.int32()),
            pa.array(value, pa.string()),
            pa.array([totals[key].sums.tobytes() if at == 0 else b"" for key, at in some], pa.binary()),
            pa.array([totals[key].draws[at : at + _PIECE].tobytes() for key, at in some], pa.binary()),
            pa.array([at for _, at in some], pa.int32()),
            pa.nulls(len(some), pa.binary()),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=PARTIALS)


def _choose_route(cut: int, value: str) -> int:
    return (sum(value.encode()) * 31 + cut) % _ROUTES


def _emit_rest(table: pa.Table) -> Batches:
    """Rows of incomplete queries, routed by query."""
    routes = pc.bit_wise_and(table[QUERY], _ROUTES - 1)
    for route in pc.unique(routes).to_pylist():
        batches = table.filter(pc.equal(routes, route)).combine_chunks().to_batches(max_chunksize=_ROWS_PER_REST)
        rows = [{"route": route, "rest": _serialise(batch)} for batch in batches]
        yield pa.RecordBatch.from_pylist([dict.fromkeys(PARTIALS.names) | row for row in rows], schema=PARTIALS)


def _serialise(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed
