"""Partial sums of one partition, for `DataFrame.mapInArrow`: small, whatever the number of queries.

Rows of one query may lie in two partitions. What is complete is summed where it lies; the rest travels on
as it is, by query, and is summed after one small shuffle. So the large table is never shuffled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from udfs.ragged import Floats, Ints
from udfs.statistics.features import OF_PAIR, OF_SYSTEM, Columns, pair_base, spelled_out, summands, system_base
from udfs.statistics.frame import QUERY, Frame, frame_of, paired, pool_columns
from udfs.statistics.plan import Plan
from udfs.statistics.resample import Hashes, poisson_weights, signs

Batches = Iterable[pa.RecordBatch]
Key = tuple[int, int, str]  # subject (systems, then pairs), cut, value

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
_QUERIES_PER_CHUNK = 4096  # keeps the columns of a chunk near the processor
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
            if key in totals:
                totals[key].add(sums, draws)
            else:
                totals[key] = Sums(sums.copy(), draws.copy())
    return totals, rest


def summed(frame: Frame, plan: Plan, totals: Totals) -> Totals:
    """`totals` with the queries of a frame added."""
    every = list(range(len(plan.metrics)))
    pools = pool_columns(plan)
    with_pool = [at for at in every if pools[at] >= 0]
    judged = [plan.numbers.index(name) if name else -1 for name in plan.judged]
    for part in frame.chunks(_QUERIES_PER_CHUNK):
        values = [frame.numbers(s, part, every) for s in range(len(plan.systems))]
        weight = frame.weight[part]
        for s in range(len(plan.systems)):
            there = (frame.at[s, part] >= 0).astype(np.float64)
            pool = np.full_like(values[s], np.nan)
            if with_pool:
                pool[:, with_pool] = frame.numbers(s, part, [pools[at] for at in with_pool])
            _add(totals, s, frame, part, system_base(values[s], there, weight, pool), plan)
        for p, (baseline, candidate) in enumerate(plan.pairs):
            b, c = plan.systems.index(baseline), plan.systems.index(candidate)
            kept = _kept(frame, part, (b, c), judged, plan)
            _add(totals, len(plan.systems) + p, frame, part, pair_base(values[b], values[c], weight, kept), plan)
    return totals


def _kept(frame: Frame, part: slice, both: tuple[int, int], judged: list[int], plan: Plan) -> Floats:
    """Per query and metric, 1 where enough of both systems' lists is judged."""
    kept = np.ones((part.stop - part.start, len(plan.metrics)))
    for metric, column in enumerate(judged):
        if column >= 0:
            share = np.stack([frame.numbers(system, part, [column])[:, 0] for system in both])
            kept[:, metric] = (share >= plan.min_judged).all(axis=0)
    return kept


def _add(totals: Totals, subject: int, frame: Frame, part: slice, base: Columns, plan: Plan) -> None:
    """Add one subject's chunk to the totals of every cell of every cut."""
    layout = OF_SYSTEM if subject < len(plan.systems) else OF_PAIR
    names = list(base)
    flat = np.concatenate([base[name] for name in names], axis=1) if plan.clustered else None
    ready = None if plan.clustered else summands(base, clustered=False)
    stacked = None if ready is None else np.concatenate(list(ready.values()), axis=1)
    for cut, (codes, cells) in enumerate(zip(frame.codes, frame.cells, strict=True)):
        cell, unit = codes[part], frame.unit[part]
        if flat is not None:
            cell, unit, reduced = _by_unit(cell, unit, flat)
            columns = dict(zip(names, np.split(reduced, len(names), axis=1), strict=True))
            ready = summands(columns, clustered=True)
            stacked = np.concatenate(list(ready.values()), axis=1)
        else:
            columns = base
        assert ready is not None and stacked is not None
        sums = _spelled(_by_cell(cell, len(cells), stacked), list(ready), layout, len(plan.metrics))
        draws = _draws(columns, cell, len(cells), unit, plan, pair=layout is OF_PAIR)
        for at in np.unique(cell):
            key = (subject, cut, cells[at])
            if key in totals:
                totals[key].add(sums[at], draws[at])
            else:
                totals[key] = Sums(sums[at].copy(), draws[at].copy())


def _by_cell(cell: Ints, cells: int, columns: Floats) -> Floats:
    """Per cell, the sum of each column over its rows."""
    rows = len(cell)
    if cells == 1:
        return np.add.reduce(columns, axis=0, keepdims=True)
    membership = sparse.csc_matrix((np.ones(rows), cell, np.arange(rows + 1)), shape=(cells, rows))
    return np.asarray(membership @ columns, dtype=np.float64)


def _by_unit(cell: Ints, unit: Hashes, columns: Floats) -> tuple[Ints, Hashes, Floats]:
    """Rows of the same unit in the same cell as one, their columns added."""
    order = np.lexsort((cell, unit))
    cell, unit = cell[order], unit[order]
    first = np.concatenate(([True], (cell[1:] != cell[:-1]) | (unit[1:] != unit[:-1])))
    return cell[first], unit[first], np.add.reduceat(columns[order], np.flatnonzero(first), axis=0)


def _spelled(by_cell: Floats, names: list[str], layout: tuple[str, ...], metrics: int) -> Floats:
    """Cells × (metrics × layout), flat, whatever was left out filled in."""
    sums = dict(zip(names, np.split(by_cell, len(names), axis=1), strict=True))
    shape = (len(by_cell), metrics)
    return np.stack([spelled_out(name, sums, shape) for name in layout], axis=2).reshape(len(by_cell), -1)


def _draws(
    columns: Columns, cell: Ints, cells: int, unit: Hashes, plan: Plan, *, pair: bool
) -> npt.NDArray[np.float64]:
    """Per cell, the replicates' sums: y and x of the bootstrap, then y of the sign flips, flat."""
    kinds: list[tuple[Floats, Floats]] = []
    if plan.bootstrap:
        both = np.concatenate((columns["y"], columns["x"]), axis=1)
        kinds.append((both, poisson_weights(unit, plan.bootstrap, plan.seed).astype(np.float64)))
    if plan.randomisation and pair:
        kinds.append((columns["y"], signs(unit, plan.randomisation, plan.seed).astype(np.float64)))
    if not kinds:
        return np.zeros((cells, 0))
    order = np.argsort(cell, kind="stable")
    borders = np.searchsorted(cell[order], np.arange(cells + 1))
    out = [np.zeros((cells, values.shape[1] * drawn.shape[1])) for values, drawn in kinds]
    for at in range(cells):
        rows = order[borders[at] : borders[at + 1]]
        if len(rows):
            for made, (values, drawn) in zip(out, kinds, strict=True):
                made[at] = (values[rows].T @ drawn[rows]).ravel()
    return np.concatenate(out, axis=1)


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
