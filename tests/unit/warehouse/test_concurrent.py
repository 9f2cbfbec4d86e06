"""Steps run at once, and their results and errors keep the order of the steps."""

import threading

import pytest

from pipelines.warehouse.concurrent import run_concurrently


def test_steps_run_at_once_and_results_are_in_order() -> None:
    barrier = threading.Barrier(3, timeout=20)  # breaks unless all three wait at the same time

    def wait_and_return(value: str) -> str:
        barrier.wait()
        return value

    steps = [lambda name=name: wait_and_return(name) for name in "abc"]
    assert run_concurrently(steps) == ["a", "b", "c"]
    assert run_concurrently([]) == []


def test_the_first_error_is_raised_after_all_steps_have_ended() -> None:
    ended: list[str] = []
    second_failed = threading.Event()

    def fail_late() -> None:
        second_failed.wait(timeout=20)
        ended.append("first")
        raise ValueError("first")

    def fail_early() -> None:
        second_failed.set()
        raise KeyError("second")

    with pytest.raises(ValueError, match="first"):
        run_concurrently([fail_late, fail_early, lambda: ended.append("third")])
    assert sorted(ended) == ["first", "third"]


def test_a_signal_in_this_thread_is_raised_at_once() -> None:
    release = threading.Event()

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_concurrently([lambda: release.wait(timeout=60), interrupt])
    release.set()
