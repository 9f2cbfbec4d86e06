"""xxHash as Spark computes it: values of `xxhash64` in Spark 4 for texts of every length class."""

import numpy as np
import pyarrow as pa

from udfs.xxhash import hash_like_spark


def test_known_hashes() -> None:
    assert hash_like_spark(pa.array(["ABC"], pa.large_string())).tolist() == [4105715581806190027]


def test_a_hash_does_not_depend_on_the_texts_beside_it() -> None:
    texts = ["é" * length for length in range(40)] + ["x" * length for length in range(80)]
    together = hash_like_spark(pa.array(["?", *texts], pa.large_string())[1:])
    alone = [hash_like_spark(pa.array([text], pa.large_string()))[0] for text in texts]
    assert together.tolist() == alone
    assert len(np.unique(together)) == len({*texts})
