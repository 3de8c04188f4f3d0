"""A release with noise of a test source says that it protects nobody, wherever it goes.

Of a file, the mark cannot be taken off in one place, or two: what is left of it contradicts the
rest. Whoever rewrites all of it is believed, as with any other claim: a checksum is no signature.
"""

import copy
import itertools
import warnings

import pytest
from every_release import ESTIMATORS, KINDS, STRUCTURES, load_bytes, released
from markup import Reader
from resealing import contents, resealed
from typer.testing import CliRunner

import discreet
from discreet.cli import app
from discreet.errors import CorruptRelease, NotPrivateWarning
from discreet.pages import as_html
from discreet.pages.corpus import corpus_page
from discreet.testing import Seeded, Silent

MARK = "NOT PRIVATE"
each_kind = pytest.mark.parametrize("kind", KINDS)
SOURCE = Seeded(1)


@pytest.fixture
def seeded(kind, shelf):
    return shelf.release(kind, entropy=SOURCE)


@pytest.fixture
def data(kind, shelf):
    return shelf.file(kind, entropy=SOURCE)


def opened(data, folder):
    with pytest.warns(
        NotPrivateWarning, match=r"attacked\.safetensors is NOT PRIVATE.*Seeded\(1\)"
    ):
        return load_bytes(data, folder)


def assert_marked(release):
    release = released(release)
    assert release.private is release.receipt.private is False
    assert MARK in repr(release)
    assert str(release.guarantee).startswith(MARK)
    assert MARK in str(release.card)
    assert str(SOURCE) in str(release.card)
    assert release.card.to_dict()["private"] is False


@each_kind
def test_it_is_marked_wherever_it_is_looked_at(kind, seeded):
    assert_marked(seeded)


@each_kind
def test_its_file_says_so_to_those_who_have_no_discreet(kind, data):
    settings, _ = contents(data)
    first = data[: 8 + int.from_bytes(data[:8], "little")].decode("utf-8", "replace")
    assert f"{MARK} (noise from {SOURCE})" in first
    assert str(SOURCE) in str(settings)


@each_kind
def test_it_is_marked_when_it_is_opened_and_whoever_opens_it_is_warned(kind, data, tmp_path):
    again = opened(data, tmp_path)
    assert_marked(again)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        load_bytes(data, tmp_path)
        load_bytes(data, tmp_path)
    assert [each.category for each in seen] == [NotPrivateWarning] * 2  # not once a process


@each_kind
def test_commands_and_pages_say_so(kind, seeded, data, tmp_path):
    (tmp_path / "file.safetensors").write_bytes(data)
    shown = CliRunner().invoke(app, ["card", str(tmp_path / "file.safetensors")])
    assert shown.exit_code == 0, shown.output
    assert MARK in shown.stdout
    assert f"is {MARK}" in shown.stderr
    if kind != "discovery":  # of which there is no page
        text = Reader(as_html(released(seeded), name="a file", pictures=False)).text
        assert f"{MARK}: This file" in text
    if kind == "corpus":
        assert f"{MARK}: This file" in Reader(corpus_page(seeded, name="a file")).text


@each_kind
def test_together_with_others_it_stays_marked(kind, seeded, shelf):
    private = shelf.release("tree" if kind in STRUCTURES else "memory")
    for several in ([seeded], [seeded, private], [private, seeded]):
        joint = discreet.combine([released(each) for each in several], delta=1e-4)
        assert str(joint).startswith(MARK)
        assert joint.scope.startswith(MARK)
    receipts = [released(private).receipt, released(seeded).receipt]
    assert discreet.combine(receipts, delta=1e-4).scope.startswith(MARK)


@each_kind
def test_silence_is_marked_too(kind, shelf):
    silent = released(shelf.release(kind, entropy=Silent()))
    assert not silent.private
    assert MARK in repr(silent)
    assert str(silent.guarantee).startswith(MARK)


def marks(value, path=()):
    """The path to everything in the settings that has to do with the mark."""
    for key in value if isinstance(value, dict) else range(len(value)):
        here = value[key]
        if isinstance(here, dict | list):
            yield from marks(here, (*path, key))
        elif key in {"private", "source", "scope"} and (here is False or str(SOURCE) in str(here)):
            yield (*path, key)


def unmarked(settings, paths):
    """The settings with some of the marks taken off."""
    changed = copy.deepcopy(settings)
    for *way, name in paths:
        at = changed
        for key in way:
            at = at[key]
        if name == "scope":
            at[name] = at[name].replace(f"{MARK} (noise from {SOURCE}): ", "")
        else:
            at[name] = True if name == "private" else "SystemEntropy()"
    return changed


def some_of(paths):
    """All ways to take off some, by kind of mark and by place; not all of them."""
    kinds = sorted({path[-1] for path in paths})
    for count in range(1, len(kinds)):
        for chosen in itertools.combinations(kinds, count):
            yield [path for path in paths if path[-1] in chosen]
    for path in paths:
        yield [path]
        yield [each for each in paths if each != path]


@each_kind
def test_a_mark_that_is_taken_off_in_some_places_is_missed_in_others(kind, data, tmp_path):
    settings, _ = contents(data)
    paths = list(marks(settings))
    assert {path[-1] for path in paths} == {"private", "source", "scope"}
    for some in some_of(paths):
        new = unmarked(settings, some)
        forged = resealed(data, lambda held, _, new=new: held.update(new))
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                again = released(load_bytes(forged, tmp_path))
            except CorruptRelease:
                continue
        # It opened: then it is marked all the same, and whoever opens it is warned.
        assert not again.private, some
        assert [each.category for each in seen] == [NotPrivateWarning], some
        assert MARK in f"{again!r}", some
        assert MARK in str(again.card), some


@each_kind
def test_a_private_file_is_not_marked(kind, shelf, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = released(load_bytes(shelf.file(kind), tmp_path))
    assert again.private
    assert MARK not in f"{again!r}{again.card}{again.guarantee}"


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_an_estimator_s_copies_are_marked(kind, seeded):
    from sklearn.base import clone

    with pytest.warns(NotPrivateWarning, match="Seeded"):
        assert_marked(copy.deepcopy(seeded))
    assert repr(SOURCE) in repr(seeded)
    assert not hasattr(clone(seeded), "release_")  # it is fitted anew, with the same source
