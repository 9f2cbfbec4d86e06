"""The rules on pairs give what a slow version gives, and users are counted once per pair."""

import numpy as np

from pipelines.labels.denoise.pair_arrays import apply_pair_rules
from pipelines.labels.denoise.registry import rule_bit
from pipelines.labels.denoise.settings import DenoiseSettings, OneUserDominates

SETTINGS = DenoiseSettings(one_user_dominates=OneUserDominates(clicks=3))


def test_rows_of_a_user_are_numbered_by_page_and_position() -> None:
    random = np.random.default_rng(5)
    size = 3_000
    pair, person = random.integers(0, 40, size), random.integers(-30, 30, size)
    person[random.random(size) < 0.2] = 7  # who dominates
    page, position = random.permutation(size) // 2, random.permutation(size)
    clicks = (random.random(size) < 0.3).astype(np.int64)
    pair_clicks = np.bincount(pair, weights=clicks).astype(np.int64)[pair]
    outcomes = apply_pair_rules(pair, person, page, position, clicks, pair_clicks, SETTINGS)
    dropped = 0
    for one in range(40):
        of_pair = np.flatnonzero(pair == one)
        users = set(person[of_pair])
        assert outcomes.users[of_pair].sum() == len(users)
        for user in users:
            rows = of_pair[person[of_pair] == user]
            rows = np.array(sorted(rows, key=lambda row: (page[row], position[row])))
            assert outcomes.users[rows].tolist() == [1] + [0] * (len(rows) - 1)
            theirs, others = clicks[rows].sum(), clicks[of_pair].sum() - clicks[rows].sum()
            kept = len(rows)
            if theirs >= 3 and theirs > 0.2 * (theirs + others):
                kept = int(np.ceil(len(rows) * max(np.floor(others * 0.25), 1) / theirs))
            expected = [0 if place < kept else rule_bit("one_user_dominates") for place in range(len(rows))]
            assert outcomes.bits[rows].tolist() == expected
            dropped += len(rows) - min(kept, len(rows))
    assert dropped > 10
