import threading
import time

import numpy as np
import pytest
from data import unit_rows
from threadpoolctl import threadpool_info, threadpool_limits

import discreet
from discreet.sums import accumulate as adder
from discreet.testing import Silent


def blas_threads():
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_each_item_is_done_once(threads):
    taken = []
    adder.share_out(range(100), lambda item, _: [item * 2], taken.append, threads=threads)
    assert sorted(taken) == [2 * item for item in range(100)]


def test_threads_have_numbers_and_take_turns():
    seen = set()
    meet = threading.Barrier(3, timeout=120)

    def work(item, thread):
        if item < 3:
            meet.wait()  # three at once, or this times out
        seen.add(thread)
        return ()

    adder.share_out(range(30), work, lambda _: None, threads=3)
    assert seen == {0, 1, 2}


@pytest.mark.parametrize("threads", [1, 4])
def test_the_first_error_ends_all(threads):
    done = []

    def work(item, _):
        if item == 5:
            raise KeyError("private")
        time.sleep(0.001)
        yield item

    with pytest.raises(KeyError):
        adder.share_out(range(100_000), work, done.append, threads=threads)
    assert len(done) < 50_000  # the others may go on while the first is about to fail


def test_blas_has_one_thread_while_work_lasts():
    found = []
    with threadpool_limits(2, user_api="blas"):
        adder.share_out(range(4), lambda *_: [blas_threads()], found.append, threads=2)
        assert found == [{1}] * 4
        assert blas_threads() == {2}


def test_results_are_taken_one_at_a_time():
    """Sums that two threads add to at once would lose what one of them adds."""
    inside, most = [], []

    def take(item):
        inside.append(item)
        most.append(len(inside))
        time.sleep(0.001)
        inside.remove(item)

    adder.share_out(range(60), lambda item, _: [item], take, threads=4)
    assert max(most) == 1


@pytest.mark.parametrize("groups", [None, np.arange(3000) // 3])
def test_any_number_of_threads_gives_the_same_bits(monkeypatch, groups):
    monkeypatch.setattr(adder, "_FEATURES_AT_ONCE", 2**16)
    layers = [(unit_rows(2, 3000, 4), unit_rows(2, 3000, 3)), (unit_rows(3000, 6),) * 2]
    options = {"epsilon": 1.0, "delta": 1e-6, "scale": [1.0, 4.0], "entropy": Silent()}
    states = []
    for threads in (1, 2, 7):
        monkeypatch.setattr(adder, "thread_count", lambda threads=threads: threads)
        made = discreet.build_many(layers, groups=groups, **options)
        states.append([memory.released.state for memory in made])
    for other in states[1:]:
        assert all(np.array_equal(*pair) for pair in zip(states[0], other, strict=True))


def test_builds_that_overlap_leave_blas_as_it_was():
    """The second begins while the first has limited it, and ends after the first is done."""
    second_began, first_ended = threading.Event(), threading.Event()

    def begin(*_):
        second.start()
        return [second_began.wait(120)]

    def last(*_):
        second_began.set()
        return [first_ended.wait(120)]

    second = threading.Thread(target=lambda: adder.share_out([0], last, id, threads=1))
    first = threading.Thread(target=lambda: adder.share_out([0], begin, id, threads=1))
    with threadpool_limits(2, user_api="blas"):
        first.start()
        first.join()
        first_ended.set()
        second.join()
        assert blas_threads() == {2}


def test_large_states_have_few_threads(monkeypatch):
    """Each thread holds a product as large as the state."""
    used = []
    share_out = adder.share_out

    def noted(*given, threads):
        used.append(threads)
        share_out(*given, threads=threads)

    monkeypatch.setattr(adder, "share_out", noted)
    monkeypatch.setattr(adder, "thread_count", lambda: 8)
    monkeypatch.setattr(adder, "_FEATURES_AT_ONCE", 2**14)
    for limit, expected in ((2**24, 8), (2**8, 1)):
        monkeypatch.setattr(adder, "_PRODUCTS_AT_ONCE", limit)
        rows = unit_rows(4_000, 8)
        discreet.build(rows, rows, epsilon=1.0, delta=1e-6, scale=1.0)
        assert used.pop() == expected
