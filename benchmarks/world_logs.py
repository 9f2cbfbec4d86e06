"""Worlds with a known truth: rankings of several systems, and the log that three of them served, drawn in NumPy."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from udfs.ragged import Floats, Ints

WORLDS = {
    "plain": "rankers with independent errors",
    "shared": "rankers share features, so that their errors agree",
    "unequal": "queries of unequal difficulty",
    "fold": "positions below 5 are examined 40 % less",
    "wrong_curve": "k^-1 examined, k^-.8 assumed",
    "production_learned": "production learned from clicks on its predecessor",
    "candidate_learned": "candidates learned from clicks of other days",
    "candidate_same_log": "candidates learned from the clicks of this log",
}
ASSUMED_ETA = {"wrong_curve": 0.8}  # the prior of the curve's exponent where it is not 1, the truth
OTHER_DAYS, SAME_LOG = "candidate_learned", "candidate_same_log"
LEARNED = (OTHER_DAYS, SAME_LOG)
QUERIES, DOCUMENTS, SHOWN = 1000, 40, 10
ATTRACTION, SHARES = np.array([0.04, 0.12, 0.30, 0.55]), np.array([0.55, 0.22, 0.14, 0.09])
TRAFFIC = {"production": 0.85, "older": 0.10, "trial": 0.05}
BASELINE, CANDIDATES = "production", ("better", "equal", "worse")
DROP = 0.05  # that the gate tolerates
QUALITY = {"production": 0.5, "older": 0.25, "trial": 0.7, "better": 0.81, "equal": 0.5, "worse": 0.39}

Grades = npt.NDArray[np.int64]


@dataclass
class World:
    """The truth, the rankings, and the log that three systems served; arrays are [query, document] where not noted."""

    grade: Grades
    rank: dict[str, Ints] = field(default_factory=dict)  # from 1
    order: dict[str, Ints] = field(default_factory=dict)  # [query, place]: documents, best first
    pages: dict[str, Ints] = field(default_factory=dict)  # [query]
    shown: Floats = field(default_factory=lambda: np.zeros((QUERIES, DOCUMENTS, SHOWN)))
    clicks: Floats = field(default_factory=lambda: np.zeros((QUERIES, DOCUMENTS, SHOWN)))

    def place(self, name: str, score: Floats) -> None:
        """Rank the documents of every query by score."""
        order = np.argsort(-score, axis=1, kind="stable")
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.broadcast_to(np.arange(1, DOCUMENTS + 1), order.shape), 1)
        self.rank[name], self.order[name] = rank, order


def draw_world(name: str, seed: int, pages: int) -> World:
    """One world with its log."""
    random = np.random.default_rng((seed, pages, zlib.crc32(name.encode())))
    shares = np.tile(SHARES, (QUERIES, 1))
    if name == "unequal":
        shares = shares * np.exp(random.normal(size=(QUERIES, 1)) * np.arange(4) * 0.6)
        shares /= shares.sum(axis=1, keepdims=True)
    below = np.cumsum(shares, axis=1)[:, None, :3]
    world = World(grade=(random.random((QUERIES, DOCUMENTS, 1)) > below).sum(axis=2))
    theta = find_examination(name)
    common, share = random.normal(size=world.grade.shape), 0.7 if name == "shared" else 0.0
    harder = np.exp(random.normal(0, 0.3, (QUERIES, 1))) - 1.0 if name == "unequal" else 0.0
    for system, quality in QUALITY.items():
        own = random.normal(size=world.grade.shape) + harder * random.normal(size=world.grade.shape)
        world.place(system, quality * world.grade + np.sqrt(1 - share**2) * own + share * common)
    if name == "production_learned":
        world.place("predecessor", 0.25 * world.grade + random.normal(size=world.grade.shape))
        past = serve(world, {"predecessor": 1.0}, 200_000, theta, random)
        text = 0.35 * world.grade + random.normal(size=world.grade.shape)
        world.place(BASELINE, 1.2 * learn_rates(*past, theta, 20.0) + 0.5 * text)
    world.shown, world.clicks = serve(world, TRAFFIC, pages, theta, random, world.pages)
    if name in LEARNED:
        same = name == SAME_LOG
        log = (world.shown, world.clicks) if same else serve(world, TRAFFIC, pages, theta, random)
        for system, quality in zip(CANDIDATES, (0.43, 0.235, 0.16), strict=True):
            own = 0.6 * random.normal(size=world.grade.shape)
            world.place(system, learn_rates(*log, theta, 10.0) + quality * world.grade + own)
    return world


def find_examination(name: str) -> Floats:
    """The true curve."""
    theta = 1.0 / np.arange(1, SHOWN + 1)
    return theta * np.where(np.arange(SHOWN) < 5, 1.0, 0.6) if name == "fold" else theta


def serve(
    world: World,
    traffic: dict[str, float],
    pages: int,
    theta: Floats,
    random: np.random.Generator,
    served: dict[str, Ints] | None = None,
) -> tuple[Floats, Floats]:
    """Impressions and clicks by position, with Zipf traffic; the pages of every system go to `served`."""
    zipf = 1.0 / np.arange(1, QUERIES + 1)
    shown, clicks = np.zeros((2, QUERIES, DOCUMENTS, SHOWN))
    every = np.arange(QUERIES)
    for system, share in traffic.items():
        count = random.multinomial(int(pages * share), zipf / zipf.sum())
        for k in range(SHOWN):
            document = world.order[system][:, k]
            shown[every, document, k] += count
            chance = ATTRACTION[world.grade[every, document]] * theta[k]
            clicks[every, document, k] += random.binomial(count, chance)
        if served is not None:
            served[system] = count
    return shown, clicks


def learn_rates(shown: Floats, clicks: Floats, theta: Floats, prior: float) -> Floats:
    """What a ranker learns from a log: the logarithm of the shrunk click rate per examination."""
    examined, x = (shown * theta).sum(axis=2), clicks.sum(axis=2)
    mean = x.sum() / examined.sum()
    return np.asarray(np.log((x + mean * prior) / (examined + prior) / mean))
