"""Who takes the time of answers learns nothing of a row; and builds do the same for neighbours.

An answer is made of the file alone, so its time can tell no more than the file does. Builds are the
builder's business (docs/privacy.md says so), and yet nothing in them turns on what a row holds:
call by call the same is done for two data sets that differ in one row. Texts are the exception:
what is done with one follows its words.
"""

import gc
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from every_release import CLASSES, DIM, KINDS, data
from scipy import stats

from discreet.testing import Seeded

# Each is run once: it may fail by chance in one of so many runs.
ALPHA = 1e-6

NUMBERS = [kind for kind in KINDS if kind != "corpus"]

# What the interpreter does when it likes: threads, locks, weak references; and other folders.
_ITS_OWN = ("threading.py", "thread.py", "weakref.py", "_weakrefset.py", "pathlib.py", "queue.py")


def calls(work):
    """Every call while something is done, of Python and of C, in order.

    Without garbage collection, which comes when it likes and calls whom it likes.
    """
    made = []

    def hear(frame, event, what):
        file = frame.f_code.co_filename.rpartition("/")[2]
        if file in _ITS_OWN:
            return
        if event == "call":
            made.append((file, frame.f_code.co_name))
        elif event == "c_call" and "lock" not in what.__qualname__.lower():
            made.append((file, what.__qualname__))

    gc.disable()
    sys.setprofile(hear)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return made


def another():
    """The same rows, with another person: out of all bounds, of another class and name."""
    rows = data()
    keys, values, labels, names = (
        each.copy() for each in (rows.keys, rows.values, rows.labels, rows.names)
    )
    keys[7], values[7], names[7] = np.linspace(-9, 9, DIM), 1e6, "flu"
    labels[7] = next(each for each in CLASSES if each != labels[7])
    return replace(rows, keys=keys, values=values, labels=labels, names=names)


@pytest.mark.parametrize("kind", NUMBERS)
def test_a_build_does_the_same_for_neighbours(kind, tmp_path):
    made = []
    for rows in (data(), data(), another()):  # the first also does what is done once
        one = lambda rows=rows: KINDS[kind].build(tmp_path, rows=rows, entropy=Seeded(3))  # noqa: E731
        made.append(calls(one))
    del made[0]
    assert len(made[0]) > 500
    # Which thread does the work of which piece is chance.
    assert made[0] == made[1] or sorted(made[0]) == sorted(made[1])


@pytest.mark.parametrize("kind", NUMBERS)
def test_an_answer_does_the_same_for_neighbours(kind, tmp_path):
    made = []
    for rows in (data(), another()):
        release = KINDS[kind].build(tmp_path, rows=rows, entropy=Seeded(3))
        KINDS[kind].answers(release)  # what is worked out once
        made.append(calls(lambda one=release: KINDS[kind].answers(one)))
    assert made[0] == made[1]


def test_what_turns_on_a_row_is_seen():
    def leaky(rows):
        return np.sort(rows.keys) if np.abs(rows.keys).max() > 1 else rows.keys

    assert calls(lambda: leaky(data())) != calls(lambda: leaky(another()))


# --- by the clock ---------------------------------------------------------------------------------


def told_apart(one, two, *, times=150):
    """Whether times of two things, taken by turns, are of two laws (Mann and Whitney)."""
    taken = ([], [])
    for _ in range(times):
        for work, seconds in zip((one, two), taken, strict=True):
            start = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - start)
    return stats.mannwhitneyu(*taken).pvalue < ALPHA


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["memory", "least squares", "softmax regression", "tree"])
def test_times_of_answers_do_not_tell_neighbours_apart(kind, tmp_path):
    releases = [
        KINDS[kind].build(tmp_path, rows=rows, entropy=Seeded(3)) for rows in (data(), another())
    ]
    one, two = (lambda made=made: KINDS[kind].answers(made) for made in releases)
    one(), two()
    assert not told_apart(one, two)
    assert told_apart(one, lambda: (two(), two()))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["memory", "least squares"])
def test_times_of_builds_do_not_tell_neighbours_apart(kind, tmp_path):
    one, two = (
        lambda rows=rows: KINDS[kind].build(tmp_path, rows=rows) for rows in (data(), another())
    )
    one(), two()
    assert not told_apart(one, two)
    assert told_apart(one, lambda: (two(), two()))
