"""Partial sums of one partition, for `DataFrame.mapInArrow`: small, whatever the number of queries.

Rows of one query may lie in two partitions. What is complete is summed where it lies; the rest travels on
as it is, by query, and is summed after one small shuffle. So the large table is never shuffled.
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
from udfs.statistics.features import OF_PAIR, OF_SYSTEM, Columns, pair_base, spelled_out, summands, system_base
from udfs.statistics.frame import QUERY, Frame, frame_of, paired
from udfs.statistics.plan import RETRIEVED, Plan
from udfs.statistics.resample import Hashes, poisson_weights, signs
from udfs.worker import ahead

Batches = Iterable[pa.RecordBatch]
Key = tuple[int, int, str]  # subject (systems, then pairs), cut, value
Layout = tuple[tuple[str, int], ...]  # names of columns side by side, and how many metrics each holds

PARTIALS = pa.schema(
    [
        ("route", pa.int64()),  # rows with the same one must meet
        ("subject", pa.int32()),
        ("cut", pa.int32()),
        ("value", pa.string()),
        ("sums", pa.binary()),  # metrics × sums as they lie in memory; empty but in the first row of a key
        ("draws", pa.binary()),  # metrics × replicates, one kind of draw after the other; or a piece
        ("at", pa.int32()),  # where the piece begins
        ("rest", pa.binary()),  # rows whose query is not complete here, as an Arrow stream
    ]
)
PARTIALS_DDL = "route bigint, subject int, cut int, value string, sums binary, draws binary, at int, rest binary"
# Batches are bounded by their number of rows, so that no row may be large: numbers, and rows, in one of them.
_PIECE = 8192
_ROWS_PER_REST = 128
_ROWS_PER_PIECE = 1 << 17
_QUERIES_PER_CHUNK = 2048  # keeps the columns of a chunk near the processor
_ROUTES = 64
_ROWS_PER_BATCH = 64


@dataclass
class Sums:
    """What has been added up for one key."""

    sums: Floats
    draws: Floats

    def add(self, sums: Floats, draws: Floats) -> None:
        self.sums += sums
        self.draws += draws


class Scratch:
    """Memory for what is needed for a moment, the same each time: to be given new takes longer than to fill it."""

    def __init__(self) -> None:
        self._memory = np.empty(0)

    def array(self, rows: int, columns: int) -> Floats:
        """An array that holds until the next one is asked for."""
        if len(self._memory) < rows * columns:
            self._memory = np.empty(rows * columns)
        return self._memory[: rows * columns].reshape(rows, columns)


Totals = dict[Key, Sums]
Place = tuple[int, int, Layout]  # subject, cut, and how the sums are laid out
K = TypeVar("K")


def partial_sums(plan: Plan, *, whole: bool) -> Callable[[Batches], Batches]:
    """The function that turns rows into partials; `whole` promises that no unit lies in two partitions."""

    def run(batches: Batches) -> Batches:
        totals: Totals = {}
        apart: list[pa.Table] = []  # rows of queries that a piece did not have whole
        for table in _pieces(ahead(batches), None if whole else _ROWS_PER_PIECE):
            here, elsewhere = (table, None) if whole or not plan.pairs else _split(table, plan)
            if elsewhere is not None:
                apart.append(elsewhere)
            if here.num_rows:
                summed(frame_of(here, plan), plan, totals)
        if apart:
            here, elsewhere = _split(pa.concat_tables(apart), plan)
            if here.num_rows:
                summed(frame_of(here, plan), plan, totals)
            if elsewhere is not None:
                yield from _rest(elsewhere)
        yield from emit(totals)

    return run


def _pieces(batches: Batches, rows: int | None) -> Iterator[pa.Table]:
    """The batches as tables of about `rows` rows, or as one: what is computed from a small one stays in the cache."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if rows is not None and sum(map(len, held)) >= rows:
            yield pa.Table.from_batches(held)
            held = []
    if any(map(len, held)):
        yield pa.Table.from_batches(held)


def _split(table: pa.Table, plan: Plan) -> tuple[pa.Table, pa.Table | None]:
    """The rows of queries for which every system is here, and the others."""
    here = paired(table, plan)
    if here.all():
        return table, None
    return table.filter(pa.array(here)), table.filter(pa.array(~here))


def merge_partials(plan: Plan) -> Callable[[Batches], Batches]:
    """The function that adds partials up by key, and sums the rows that had been left over."""
    return lambda batches: emit(merged(batches, plan))


def merged(batches: Batches, plan: Plan) -> Totals:
    """The totals of these partials by key, and of the rows among them."""
    totals, rest = collect(batches)
    if rest:
        summed(frame_of(pa.concat_tables(rest), plan), plan, totals)
    return totals


def collect(batches: Batches) -> tuple[Totals, list[pa.Table]]:
    """The totals of these partials by key, and the rows among them that are still to be summed."""
    pieces: dict[tuple[Key, int], Sums] = {}
    rest: list[pa.Table] = []
    for batch in batches:
        rest += [pa.ipc.open_stream(blob).read_all() for blob in batch["rest"].drop_null().to_pylist()]
        of_keys = batch.filter(batch["rest"].is_null()).to_pydict()
        keys = zip(of_keys["subject"], of_keys["cut"], of_keys["value"], strict=True)
        for key, at, sums, draws in zip(keys, of_keys["at"], of_keys["sums"], of_keys["draws"], strict=True):
            _into(pieces, (key, at), Sums(np.frombuffer(sums), np.frombuffer(draws)))
    return _whole(pieces), rest


def _whole(pieces: Mapping[tuple[Key, int], Sums]) -> Totals:
    """The totals of each key from its pieces, whatever the order in which they came."""
    found: dict[Key, list[Sums]] = {}
    for key, at in sorted(pieces):
        found.setdefault(key, []).append(pieces[key, at])
    return {
        key: Sums(of_key[0].sums, np.concatenate([piece.draws for piece in of_key])) for key, of_key in found.items()
    }


def summed(frame: Frame, plan: Plan, totals: Totals) -> Totals:
    """`totals` with the queries of a frame added."""
    running: dict[Place, Sums] = {}
    scratch = Scratch()
    for part in frame.chunks(_QUERIES_PER_CHUNK):
        for place, sums in (_by_unit if plan.clustered else _by_query)(frame, part, plan, scratch):
            _into(running, place, sums)
    for (subject, cut, layout), whole in running.items():
        wanted = OF_SYSTEM if subject < len(plan.systems) else OF_PAIR
        sums_of = _spelled(whole.sums, layout, wanted, plan)
        for at, value in enumerate(frame.cells[cut]):
            _into(totals, (subject, cut, value), Sums(sums_of[at], whole.draws[at]))
    return totals


def _by_query(frame: Frame, part: slice, plan: Plan, scratch: Scratch) -> Iterator[tuple[Place, Sums]]:
    """The sums of some queries by cell, where every query is a unit: all cuts in one go."""
    bases, draws = _bases(frame, part, plan), _draws(frame.unit[part], plan)
    codes, cells = [codes[part] for codes in frame.codes], [len(names) for names in frame.cells]
    cut_once = len(codes) > 1  # then the sums of everything are those of the cells of one cut
    member = _membership(codes[cut_once:], cells[cut_once:])
    borders = np.cumsum(cells[cut_once:])[:-1]
    replicated = [_replicated(cell, size, bases, draws, plan) for cell, size in zip(codes, cells, strict=True)]
    for subject, base in enumerate(bases):
        layout, stacked = _side_by_side(summands(base, clustered=False), scratch)
        sums = np.split(member @ stacked, borders)
        for cut, of_cut in enumerate([sums[0].sum(axis=0, keepdims=True), *sums] if cut_once else sums):
            yield (subject, cut, layout), Sums(of_cut, replicated[cut][subject])


def _by_unit(frame: Frame, part: slice, plan: Plan, scratch: Scratch) -> Iterator[tuple[Place, Sums]]:
    """The sums of some queries by cell, where a unit holds several: which they are differs from cut to cut."""
    bases, draws = _bases(frame, part, plan), _draws(frame.unit[part], plan)
    for cut, codes in enumerate(frame.codes):
        cell, merged, drawn = _merged(codes[part], frame.unit[part], bases, draws)
        size = len(frame.cells[cut])
        member, replicated = _membership([cell], [size]), _replicated(cell, size, merged, drawn, plan)
        for subject, base in enumerate(merged):
            layout, stacked = _side_by_side(summands(base, clustered=True), scratch)
            yield (subject, cut, layout), Sums(member @ stacked, replicated[subject])


def _into(totals: dict[K, Sums], key: K, found: Sums) -> None:
    if key in totals:
        totals[key].add(found.sums, found.draws)
    else:
        totals[key] = Sums(found.sums.copy(), found.draws.copy())


def _bases(frame: Frame, part: slice, plan: Plan) -> list[Columns]:
    """What is summed, query by query: first for each system, then for each pair."""
    metrics, pools = slice(len(plan.metrics)), [plan.numbers.index(plan.metrics[at] + POOL) for at in plan.with_pool]
    numbers = [frame.numbers(system, part) for system in range(len(plan.systems))]
    values = [np.ascontiguousarray(mine[:, metrics]) for mine in numbers]
    kept, lacking = zip(*[_judged(mine, plan) for mine in numbers], strict=True)
    weight = frame.weight[part]
    bases = []
    for system, mine in enumerate(numbers):
        there = (frame.at[system, part] >= 0).astype(np.float64)
        bases.append(system_base(values[system], kept[system], there, weight, mine[:, pools], plan.with_pool))
    for pair in plan.pairs:
        b, c = (plan.systems.index(name) for name in pair)
        both, either = kept[b] & kept[c], lacking[b] | lacking[c]
        bases.append(pair_base(values[b], values[c], weight, both, either, flipped=plan.randomisation > 0))
    return bases


def _judged(numbers: Floats, plan: Plan) -> tuple[Bools, Bools]:
    """Per query and metric, whether enough of the system's list is judged, and whether too little is.

    An empty list has nothing unjudged: that a system found nothing is known, and counts.
    """
    kept = np.ones((len(numbers), len(plan.metrics) if any(plan.judged) else 1), dtype=bool)
    lacking = np.zeros_like(kept)
    for metric, name in enumerate(plan.judged):
        if name is not None:
            share, length = (numbers[:, plan.numbers.index(n)] for n in (name, RETRIEVED))
            share = np.where(length == 0, 1.0, share)
            kept[:, metric], lacking[:, metric] = share >= plan.min_judged, share < plan.min_judged
    return kept, lacking


def _membership(codes: list[Ints], cells: list[int]) -> Any:
    """A sparse matrix of 0 and 1, the cells of all cuts × rows: its product with columns sums them by cell."""
    rows = len(codes[0])
    starts = np.concatenate(([0], np.cumsum(cells)))
    places = np.stack(codes, axis=1) + starts[:-1]
    pointers = np.arange(0, places.size + 1, len(codes))
    return sparse.csc_matrix((np.ones(places.size), places.ravel(), pointers), shape=(starts[-1], rows))


def _side_by_side(columns: Columns, scratch: Scratch) -> tuple[Layout, Floats]:
    """The columns in one array, row after row as the sums want them, and where each of them stands."""
    layout = tuple((name, values.shape[1]) for name, values in columns.items())
    stacked = scratch.array(len(next(iter(columns.values()))), sum(width for _, width in layout))
    return layout, np.concatenate(list(columns.values()), axis=1, out=stacked)


def _merged(
    cell: Ints, unit: Hashes, bases: list[Columns], draws: list[Floats]
) -> tuple[Ints, list[Columns], list[Floats]]:
    """Rows of the same unit in the same cell as one, their columns added; they share their draws already."""
    order = np.lexsort((cell, unit))
    cell, unit = cell[order], unit[order]
    starts = np.flatnonzero(np.concatenate(([True], (cell[1:] != cell[:-1]) | (unit[1:] != unit[:-1]))))
    merged = [{name: np.add.reduceat(values[order], starts, axis=0) for name, values in b.items()} for b in bases]
    return cell[starts], merged, [drawn[order[starts]] for drawn in draws]


def _spelled(by_cell: Floats, layout: Layout, wanted: tuple[str, ...], plan: Plan) -> Floats:
    """Cells × (metrics × wanted), flat; what was left out or stood once for all metrics is filled in."""
    borders = np.cumsum([width for _, width in layout])[:-1]
    sums = dict(zip([name for name, _ in layout], np.split(by_cell, borders, axis=1), strict=True))
    every = [spelled_out(name, sums, len(plan.metrics), plan.with_pool) for name in wanted]
    return np.stack(every, axis=2).reshape(len(by_cell), -1)


def _draws(unit: Hashes, plan: Plan) -> list[Floats]:
    """Units × replicates: the weights of the bootstrap and the sign flips; without columns where not asked for."""
    weights = poisson_weights(unit, plan.bootstrap, plan.seed).astype(np.float64)
    return [weights, signs(unit, plan.randomisation, plan.seed).astype(np.float64)]


def _replicated(cell: Ints, cells: int, bases: list[Columns], draws: list[Floats], plan: Plan) -> list[Floats]:
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
        weights, flips = (drawn[order] for drawn in draws)
        for at in np.flatnonzero(np.diff(borders)):
            rows = slice(borders[at], borders[at + 1])
            weighed[:, at] = (both[rows].T @ weights[rows]).reshape(subjects, -1)
            flipped[:, at] = (delta[rows].T @ flips[rows]).reshape(subjects - systems, -1)
    none = np.zeros((cells, 0))
    rest = [none] * systems + list(flipped)
    return [np.concatenate((w, f), axis=1) for w, f in zip(weighed, rest, strict=True)]


def emit(totals: Totals) -> Batches:
    """Totals as partials, some at a time."""
    rows = [(key, at) for key, whole in totals.items() for at in range(0, max(len(whole.draws), 1), _PIECE)]
    for start in range(0, len(rows), _ROWS_PER_BATCH):
        some = rows[start : start + _ROWS_PER_BATCH]
        subject, cut, value = zip(*[key for key, _ in some], strict=True)
        columns = [
            pa.array([_route(key[1], key[2]) for key, _ in some], pa.int64()),
            pa.array(subject, pa.int32()),
            pa.array(cut, pa.int32()),
            pa.array(value, pa.string()),
            pa.array([totals[key].sums.tobytes() if at == 0 else b"" for key, at in some], pa.binary()),
            pa.array([totals[key].draws[at : at + _PIECE].tobytes() for key, at in some], pa.binary()),
            pa.array([at for _, at in some], pa.int32()),
            pa.nulls(len(some), pa.binary()),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=PARTIALS)


def _route(cut: int, value: str) -> int:
    return (sum(value.encode()) * 31 + cut) % _ROUTES


def _rest(table: pa.Table) -> Batches:
    """Rows to be summed elsewhere: those of one query take one route."""
    routes = pc.bit_wise_and(table[QUERY], _ROUTES - 1)
    for route in pc.unique(routes).to_pylist():
        batches = table.filter(pc.equal(routes, route)).combine_chunks().to_batches(max_chunksize=_ROWS_PER_REST)
        rows = [{"route": route, "rest": _packed(batch)} for batch in batches]
        yield pa.RecordBatch.from_pylist([dict.fromkeys(PARTIALS.names) | row for row in rows], schema=PARTIALS)


def _packed(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed
