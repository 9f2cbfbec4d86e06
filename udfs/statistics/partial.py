"""Partial sums of one partition, for `DataFrame.mapInArrow`: small, whatever the number of queries.

Rows of one query may lie in two partitions. What is complete is summed where it lies; the rest travels on
as it is, by query, and is summed after one small shuffle. So the large table is never shuffled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from udfs.ragged import Bools, Floats, Ints
from udfs.statistics.features import OF_PAIR, OF_SYSTEM, Columns, pair_base, spelled_out, summands, system_base
from udfs.statistics.frame import QUERY, Frame, frame_of, paired, pool_columns
from udfs.statistics.plan import Plan
from udfs.statistics.resample import Hashes, poisson_weights, signs

Batches = Iterable[pa.RecordBatch]
Key = tuple[int, int, str]  # subject (systems, then pairs), cut, value
Layout = tuple[tuple[str, int], ...]  # names of columns side by side, and how many metrics each holds

PARTIALS = pa.schema(
    [
        ("route", pa.int64()),  # rows with the same one must meet
        ("subject", pa.int32()),
        ("cut", pa.int32()),
        ("value", pa.string()),
        ("sums", pa.list_(pa.float64())),  # metrics × sums, flat
        ("draws", pa.list_(pa.float64())),  # metrics × replicates, one kind of draw after the other, flat
        ("rest", pa.binary()),  # rows whose query is not complete here, as an Arrow stream
    ]
)
PARTIALS_DDL = "route bigint, subject int, cut int, value string, sums array<double>, draws array<double>, rest binary"
_QUERIES_PER_CHUNK = 2048  # keeps the columns of a chunk near the processor
_ROUTES = 64
_KEYS_PER_BATCH = 64


@dataclass
class Sums:
    """What has been added up for one key."""

    sums: Floats
    draws: Floats

    def add(self, sums: Floats, draws: Floats) -> None:
        self.sums += sums
        self.draws += draws


Totals = dict[Key, Sums]
K = TypeVar("K")


def partial_sums(plan: Plan, *, whole: bool) -> Callable[[Batches], Batches]:
    """The function that turns rows into partials; `whole` promises that no unit lies in two partitions."""

    def run(batches: Batches) -> Batches:
        held = [batch for batch in batches if batch.num_rows]
        if not held:
            return
        table = pa.Table.from_batches(held)
        if not whole and plan.pairs:
            here = paired(table, plan)
            if not here.all():
                yield from _rest(table.filter(pa.array(~here)))
                table = table.filter(pa.array(here))
        if table.num_rows:
            yield from emit(summed(frame_of(table, plan), plan, {}))

    return run


def merge_partials(plan: Plan) -> Callable[[Batches], Batches]:
    """The function that adds partials up by key, and sums the rows that had been left over."""

    def run(batches: Batches) -> Batches:
        totals, rest = collect(batches)
        if rest:
            summed(frame_of(pa.concat_tables(rest), plan), plan, totals)
        yield from emit(totals)

    return run


def collect(batches: Batches) -> tuple[Totals, list[pa.Table]]:
    """The totals of these partials by key, and the rows among them that are still to be summed."""
    totals: Totals = {}
    rest: list[pa.Table] = []
    for batch in batches:
        for row in range(batch.num_rows):
            blob = batch["rest"][row]
            if blob.is_valid:
                rest.append(pa.ipc.open_stream(blob.as_buffer()).read_all())
                continue
            key = (batch["subject"][row].as_py(), batch["cut"][row].as_py(), batch["value"][row].as_py())
            sums, draws = (batch[name][row].values.to_numpy() for name in ("sums", "draws"))
            _into(totals, key, Sums(sums, draws))
    return totals, rest


def summed(frame: Frame, plan: Plan, totals: Totals) -> Totals:
    """`totals` with the queries of a frame added."""
    running: dict[tuple[int, int, Layout], Sums] = {}
    for part in frame.chunks(_QUERIES_PER_CHUNK):
        unit, bases, draws = frame.unit[part], _bases(frame, part, plan), _draws(frame.unit[part], plan)
        columns = [] if plan.clustered else [_side_by_side(summands(base, clustered=False)) for base in bases]
        for cut, codes in enumerate(frame.codes):
            cell, merged, drawn = codes[part], bases, draws
            if plan.clustered:
                cell, merged, drawn = _by_unit(cell, unit, bases, draws)
                columns = [_side_by_side(summands(base, clustered=True)) for base in merged]
            member = _membership(cell, len(frame.cells[cut]))
            replicated = _replicated(cell, len(frame.cells[cut]), merged, drawn, plan)
            for subject, (layout, stacked) in enumerate(columns):
                _into(running, (subject, cut, layout), Sums(np.asarray(member @ stacked), replicated[subject]))
    for (subject, cut, layout), whole in running.items():
        wanted = OF_SYSTEM if subject < len(plan.systems) else OF_PAIR
        sums = _spelled(whole.sums, layout, wanted, len(plan.metrics))
        for at, value in enumerate(frame.cells[cut]):
            _into(totals, (subject, cut, value), Sums(sums[at], whole.draws[at]))
    return totals


def _into(totals: dict[K, Sums], key: K, found: Sums) -> None:
    if key in totals:
        totals[key].add(found.sums, found.draws)
    else:
        totals[key] = Sums(found.sums.copy(), found.draws.copy())


def _bases(frame: Frame, part: slice, plan: Plan) -> list[Columns]:
    """What is summed, query by query: first for each system, then for each pair."""
    every = list(range(len(plan.metrics)))
    pools = pool_columns(plan)
    with_pool = [at for at in every if pools[at] >= 0]
    values = [frame.numbers(system, part, every) for system in range(len(plan.systems))]
    kept = [_kept(frame, part, system, plan) for system in range(len(plan.systems))]
    weight = frame.weight[part]
    bases = []
    for system, mine in enumerate(values):
        pool = np.full_like(mine, np.nan) if with_pool else None
        if pool is not None:
            pool[:, with_pool] = frame.numbers(system, part, [pools[at] for at in with_pool])
        there = (frame.at[system, part] >= 0).astype(np.float64)
        bases.append(system_base(np.where(kept[system], mine, np.nan), there, weight, pool))
    for pair in plan.pairs:
        b, c = (plan.systems.index(name) for name in pair)
        bases.append(pair_base(values[b], values[c], weight, kept[b] & kept[c]))
    return bases


def _kept(frame: Frame, part: slice, system: int, plan: Plan) -> Bools:
    """Per query and metric, whether enough of the system's list is judged."""
    kept = np.ones((part.stop - part.start, len(plan.metrics)), dtype=bool)
    for metric, name in enumerate(plan.judged):
        if name is not None:
            kept[:, metric] = frame.numbers(system, part, [plan.numbers.index(name)])[:, 0] >= plan.min_judged
    return kept


def _membership(cell: Ints, cells: int) -> Any:
    """A sparse matrix of 0 and 1, cells × rows: its product with columns sums them by cell."""
    rows = len(cell)
    return sparse.csc_matrix((np.ones(rows), cell, np.arange(rows + 1)), shape=(cells, rows))


def _side_by_side(columns: Columns) -> tuple[Layout, Floats]:
    """The columns in one array, row after row as the sums want them, and where each of them stands."""
    layout = tuple((name, values.shape[1]) for name, values in columns.items())
    stacked = np.empty((len(next(iter(columns.values()))), sum(width for _, width in layout)))
    return layout, np.concatenate(list(columns.values()), axis=1, out=stacked)


def _by_unit(
    cell: Ints, unit: Hashes, bases: list[Columns], draws: list[Floats]
) -> tuple[Ints, list[Columns], list[Floats]]:
    """Rows of the same unit in the same cell as one, their columns added; they share their draws already."""
    order = np.lexsort((cell, unit))
    cell, unit = cell[order], unit[order]
    starts = np.flatnonzero(np.concatenate(([True], (cell[1:] != cell[:-1]) | (unit[1:] != unit[:-1]))))
    merged = [{name: np.add.reduceat(values[order], starts, axis=0) for name, values in b.items()} for b in bases]
    return cell[starts], merged, [drawn[order[starts]] for drawn in draws]


def _spelled(by_cell: Floats, layout: Layout, wanted: tuple[str, ...], metrics: int) -> Floats:
    """Cells × (metrics × wanted), flat; what was left out or stood once for all metrics is filled in."""
    borders = np.cumsum([width for _, width in layout])[:-1]
    sums = dict(zip([name for name, _ in layout], np.split(by_cell, borders, axis=1), strict=True))
    shape = (len(by_cell), metrics)
    every = [np.broadcast_to(spelled_out(name, sums, shape), shape) for name in wanted]
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
    keys = list(totals)
    for start in range(0, len(keys), _KEYS_PER_BATCH):
        some = keys[start : start + _KEYS_PER_BATCH]
        subject, cut, value = zip(*some, strict=True)
        columns = [
            pa.array([_route(key[1], key[2]) for key in some], pa.int64()),
            pa.array(subject, pa.int32()),
            pa.array(cut, pa.int32()),
            pa.array(value, pa.string()),
            _lists([totals[key].sums for key in some]),
            _lists([totals[key].draws for key in some]),
            pa.nulls(len(some), pa.binary()),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=PARTIALS)


def _lists(arrays: list[Floats]) -> pa.ListArray:
    offsets = np.concatenate(([0], np.cumsum([len(values) for values in arrays]))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.concatenate(arrays)))


def _route(cut: int, value: str) -> int:
    return (sum(value.encode()) * 31 + cut) % _ROUTES


def _rest(table: pa.Table) -> Batches:
    """Rows to be summed elsewhere: those of one query take one route."""
    routes = pc.bit_wise_and(table[QUERY], _ROUTES - 1)
    for route in pc.unique(routes).to_pylist():
        rows = table.filter(pc.equal(routes, route))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_table(rows)
        row = {"route": route, "rest": sink.getvalue().to_pybytes()}
        yield pa.RecordBatch.from_pylist([{name: row.get(name) for name in PARTIALS.names}], schema=PARTIALS)
