"""One suite for every reader: what protects, what is counted, what is saved, and what is said.

A test module inherits `ReaderContract` and has a fixture `reader`: a `Reader`, which says how to
ask for it and what rows it takes. Those that read rows more than once leave out what is for others.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from ledgers import Watching
from resealing import resealed
from scipy import stats

import discreet
from discreet.accounting.promise import Promise
from discreet.errors import BudgetExceeded, CorruptRelease, InvalidInput, NotPrivateWarning
from discreet.ledger import Ledger, State
from discreet.ledger.ledger import account_of
from discreet.privacy import Neighbours
from discreet.readers import registry
from discreet.shards import Job
from discreet.sums.accumulate import Accumulator
from discreet.sums.door import Door
from discreet.sums.mechanism import Mechanism, ReleaseBuilder, build
from discreet.sums.settings import Settings, Unit, part_sigmas
from discreet.testing import Seeded, Silent

SPEND = {"epsilon": 1.0, "delta": 1e-6}
GROUP_ROWS = (0.3, 1.0, 2.5)

# Each statistical test is run at this level; seeds are fixed, so it fails always or never.
ALPHA = 1e-4

# σ and weights are rounded: so much more than the claim is within one part in 10^15.
ROUNDED = (1 + Fraction(1, 10**15)) ** 2

_SPECIAL = st.sampled_from([0.0, 1.0, -1.0, 1e-200, 1e300, -1e300, 0.49999, 2.0])
NUMBERS = st.one_of(_SPECIAL, st.floats(-3, 3))


@dataclass(frozen=True, kw_only=True)
class Pass:
    """Sums that a reader asks the door for, of what `view` makes of a table."""

    settings: Settings[Any]
    view: Callable[[Any], Any] = lambda table: table


def one_pass(whole: Settings[Any], seed: int) -> list[Pass]:
    """What a reader that reads once asks for."""
    return [Pass(settings=whole)]


@dataclass(frozen=True, kw_only=True, eq=False)
class Reader:
    """How tests ask for one reader.

    Attributes:
        mechanism: the reader.
        answer: asks a release, and returns numbers.
        options: beside ε and δ.
        heads: leading axes of keys and values.
        value_dim: width of values; None if they are labels, shape (n,).
        values: what a drawn value may be.
        front: its front door; None if it has none but the engine's.
        passes: what it asks the door for, given settings and a seed for what it may have learned.
        planned: what a plan takes beside rows, key_dim, ε, δ and the options; None if it has none.
        delta: of the guarantee; 0 if all that is drawn is Laplace noise.
    """

    mechanism: Mechanism[Any, Any, Any]
    answer: Callable[[Any, Any], Any]
    options: dict[str, Any] = field(default_factory=dict)
    heads: tuple[int, ...] = ()
    value_dim: int | None = 2
    values: Any = NUMBERS
    front: Callable[..., Any] | None = None
    passes: Callable[[Settings[Any], int], list[Pass]] = one_pass
    planned: dict[str, Any] | None = field(default_factory=dict)
    delta: float = SPEND["delta"]

    def rows(self, count=40, seed=0):
        """Keys within their bound, and values; always the same."""
        rng = np.random.default_rng(seed)
        keys = rng.uniform(-0.7, 0.7, (*self.heads, count, 2))
        if self.value_dim is None:
            return keys, rng.integers(0, 2, count)
        return keys, rng.uniform(-0.7, 0.7, (*self.heads, count, self.value_dim))

    def drawn(self, draw, count):
        """Keys and values of any finite size, out of the bounds included."""
        keys = draw(hnp.arrays(np.float64, (*self.heads, count, 2), elements=NUMBERS))
        shape = (count,) if self.value_dim is None else (*self.heads, count, self.value_dim)
        dtype = np.int64 if self.value_dim is None else np.float64
        return keys, draw(hnp.arrays(dtype, shape, elements=self.values))

    def chosen(self, **changes):
        return self.mechanism.options(**SPEND | self.options | changes)

    def source(self, keys, values, groups, options):
        return self.mechanism.source(keys, values, groups, options)

    def build(self, keys, values=None, *, groups=None, entropy=None, **changes):
        """Return a release, through the front door if there is one."""
        if self.front is not None:
            made = SPEND | self.options | changes
            return self.front(keys, values, groups=groups, entropy=entropy, **made)
        names = ("ledger", "dataset", "analyst", "account")
        counted = {name: changes.pop(name) for name in names if name in changes}
        options = self.chosen(**changes)
        rows = self.source(keys, values, groups, options)
        account = account_of(**counted)
        [release] = build(self.mechanism, rows, options, entropy=entropy, account=account)
        return release

    def at_rows(self, rows, at):
        """Some of the rows: keys have them in the last axis but one, and so have values."""
        keys, values = rows
        return keys[..., at, :], values[at] if self.value_dim is None else values[..., at, :]

    def sharded(self, rows, at):
        """Some of the rows as a job takes them: labels are places, in a column."""
        keys, values = self.at_rows(rows, at)
        return keys, values[:, None] if self.value_dim is None else values

    def joined(self, one, other):
        """The rows of two tables."""
        axis = 0 if self.value_dim is None else -2
        return (
            np.concatenate([one[0], other[0]], axis=-2),
            np.concatenate([one[1], other[1]], axis=axis),
        )

    def resolved(self, unit=Unit.ROW, **changes):
        """The options, and the public settings that follow from them."""
        options = self.chosen(**changes)
        groups = None if unit is Unit.ROW else np.zeros(1, int)
        rows = self.source(*self.rows(1), groups, options)
        return options, self.mechanism.resolve(rows.shapes, options, unit=unit)

    def exact(self, each, options, rows, groups=None):
        """The exact sums of one pass over rows."""
        adder = Accumulator(each.settings)
        for tables, of_row in self.source(*rows, groups, options).chunks():
            adder.add([each.view(table) for table in tables], groups=of_row)
        return adder.sums


def parts_of(release):
    """The noisy sums, part by part."""
    return (release.released.state, *release.released.others)


def same_bits(one, other):
    return all(map(np.array_equal, parts_of(one), parts_of(other)))


def moved(settings_, one, other):
    """How far sums are apart, squared, over what is claimed of them; exactly.

    In units of the noise that is really drawn; and on the way, in lattice units: parts times their
    weights are never further apart than √heads times the sensitivity.
    """
    parts = iter(zip(one, other, strict=True))
    if settings_.pure:
        return loss(settings_, one, other) ** 2
    in_noise = in_units = Fraction(0)
    for layout in settings_.layouts:
        sensitivity = Fraction(settings_.sensitivity(layout))
        for weight, law in zip(layout.part_weights, settings_.laws(layout), strict=True):
            a, b = next(parts)
            squares = sum(int(x) ** 2 for x in (a - b).ravel())
            in_noise += squares / Fraction(law.sigma) ** 2
            in_units += squares * (Fraction(weight) / sensitivity) ** 2
    assert in_units <= settings_.head_count * ROUNDED
    spent = Fraction(settings_.share) / Fraction(settings_.multiplier) ** 2
    return in_noise / (settings_.head_count * spent)


def loss(settings_, one, other):
    """The largest privacy loss between counts in cells, over what is claimed of it; exactly."""
    [layout] = settings_.layouts
    total = Fraction(0)
    for a, b, law in zip(one, other, settings_.laws(layout), strict=True):
        total += Fraction(int(np.abs(a - b).sum())) / Fraction(law.scale)
    return total / Fraction(settings_.pure)


class ReaderContract:
    """What holds of every reader."""

    @pytest.fixture
    def ledger(self, tmp_path):
        made = Ledger(tmp_path / "budget.db")
        made.create("clinic", epsilon=1.0, delta=1e-5)
        return made

    # --- building ---------------------------------------------------------------------------------

    def test_it_is_in_the_registry_under_its_name(self, reader):
        assert registry.mechanism_named(reader.mechanism.name) is reader.mechanism
        kinds = [each.answers.kind for each in registry.MECHANISMS]
        assert kinds.count(reader.mechanism.answers.kind) == 1

    def test_the_same_settings_follow_from_the_same_public_numbers(self, reader):
        for unit in Unit:
            (_, one), (_, other) = reader.resolved(unit), reader.resolved(unit)
            assert one.digest == other.digest

    def test_chunks_give_the_bits_of_arrays(self, reader):
        rows = reader.rows()
        whole = reader.build(*rows, entropy=Seeded(1))
        chunks = [reader.at_rows(rows, slice(i, i + 7)) for i in range(0, 40, 7)]
        assert same_bits(whole, reader.build(chunks, entropy=Seeded(1)))
        shuffled = reader.at_rows(rows, np.random.default_rng(1).permutation(40))
        assert same_bits(whole, reader.build(*shuffled, entropy=Seeded(1)))

    def test_a_builder_gives_the_bits_of_arrays_and_releases_once(self, reader):
        if not reader.mechanism.reads_once:
            pytest.skip("rows are read more than once")
        rows, options = reader.rows(), reader.chosen()
        builder = ReleaseBuilder(reader.mechanism, options)
        for part in (slice(0, 25), slice(25, 40)):
            source = reader.source(*reader.at_rows(rows, part), None, options)
            for tables, groups in source.chunks():
                builder.add_tables(tables, groups)
        [made] = builder._release(Seeded(1))
        assert same_bits(made, reader.build(*rows, entropy=Seeded(1)))
        with pytest.raises(BudgetExceeded, match="not been released"):
            builder._release(Seeded(2))

    def job(self, reader, **changes):
        return Job(
            key_dim=2,
            value_dim=reader.value_dim or 1,
            heads=reader.heads,
            reader=reader.mechanism.name,
            **SPEND | reader.options | changes,
        )

    def test_shards_in_any_order_give_the_bits_of_arrays(self, reader):
        if not reader.mechanism.reads_once:
            with pytest.raises(InvalidInput, match="reads rows once"):
                self.job(reader)
            return
        rows, job = reader.rows(), self.job(reader)
        shards = {"a": slice(0, 3), "b": slice(3, 30), "c": slice(30, 40)}
        parts = {
            name: job.partial(reader.sharded(rows, at), shard=name) for name, at in shards.items()
        }
        merged = job.merge([parts["c"], parts["a"]])
        made = job.release([parts["b"], merged], expected=shards, entropy=Seeded(1))
        assert same_bits(made, reader.build(*rows, entropy=Seeded(1)))

    def test_records_in_shards_give_the_bits_of_arrays(self, reader):
        if not reader.mechanism.reads_once:
            pytest.skip("rows are read more than once")
        rows, groups = reader.rows(), np.repeat(np.arange(8), 5)
        job = self.job(reader, by_record=True)
        shards = {"a": slice(0, 15), "b": slice(15, 40)}
        parts = [
            job.partial(reader.sharded(rows, at), shard=name, groups=groups[at])
            for name, at in shards.items()
        ]
        made = job.release(parts[::-1], expected=shards, entropy=Seeded(1))
        assert same_bits(made, reader.build(*rows, groups=groups, entropy=Seeded(1)))

    # --- what protects ----------------------------------------------------------------------------

    @pytest.mark.parametrize("neighbours", Neighbours)
    @settings(max_examples=25)
    @given(data=st.data())
    def test_one_row_moves_sums_by_at_most_the_claim(self, reader, neighbours, data):
        options, whole = reader.resolved(neighbours=neighbours)
        rows = reader.drawn(data.draw, 3)
        others = reader.at_rows(rows, slice(1, 3))
        other = others
        if neighbours is Neighbours.REPLACE:
            other = reader.joined(reader.drawn(data.draw, 1), others)
        for each in reader.passes(whole, data.draw(st.integers(0, 9))):
            one_sums, other_sums = (reader.exact(each, options, some) for some in (rows, other))
            assert moved(each.settings, one_sums, other_sums) <= ROUNDED

    @pytest.mark.parametrize("neighbours", Neighbours)
    @settings(max_examples=25)
    @given(data=st.data())
    def test_one_record_moves_sums_by_at_most_the_claim(self, reader, neighbours, data):
        group_rows = data.draw(st.sampled_from(GROUP_ROWS))
        changes = {"neighbours": neighbours, "group_rows": group_rows}
        options, whole = reader.resolved(Unit.RECORD, **changes)
        size, new = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
        others, names = reader.drawn(data.draw, 3), [1, 1, 2]
        one = reader.joined(reader.drawn(data.draw, size), others)
        if neighbours is Neighbours.ADD_REMOVE:
            other, new = others, 0
        else:
            other = reader.joined(reader.drawn(data.draw, new), others)
        groups = (np.array([7] * count + names) for count in (size, new))
        both = list(zip((one, other), groups, strict=True))
        for each in reader.passes(whole, data.draw(st.integers(0, 9))):
            sums = (reader.exact(each, options, some, of_row) for some, of_row in both)
            assert moved(each.settings, *sums) <= ROUNDED

    @pytest.mark.parametrize("size", [5, 100, 129, 1_000])
    @pytest.mark.parametrize("same", [True, False], ids=["same", "different"])
    def test_no_record_exceeds_its_cap_and_many_rows_reach_it(self, reader, same, size):
        """Short records are scaled row by row, long ones after they were added up."""
        for group_rows in GROUP_ROWS:
            options, whole = reader.resolved(Unit.RECORD, group_rows=group_rows)
            rows = reader.rows(size, seed=size)
            if same:
                rows = reader.at_rows(rows, np.zeros(size, int))
            rows = 5 * rows[0], rows[1] if reader.value_dim is None else 5 * rows[1]
            first = None
            for each in reader.passes(whole, 3):
                sums = reader.exact(each, options, rows, np.zeros(size, int))
                reached = moved(each.settings, sums, [np.zeros_like(part) for part in sums])
                assert reached <= ROUNDED
                first = reached if first is None else first
            if same and size > 5:
                assert first > Fraction(9, 10) ** 2

    def noise(self, reader, builds):
        """Drawn noise over what is claimed of it, in one array."""
        drawn = []
        if reader.mechanism.reads_once:
            rows = reader.rows()
            silent = reader.build(*rows, entropy=Silent())
            sigmas = part_sigmas(silent.released.layout, silent.released.sigma)
            for seed in range(builds):
                made = parts_of(reader.build(*rows, entropy=Seeded(seed)))
                for noisy, true, sigma in zip(made, parts_of(silent), sigmas, strict=True):
                    drawn.append((noisy - true).ravel() / sigma)
            return np.concatenate(drawn)
        options, whole = reader.resolved()
        for seed in range(builds):
            for each in reader.passes(whole, seed):
                [layout] = each.settings.layouts
                noisy, true = (
                    Door(whole, entropy=entropy).sum(
                        layout,
                        reader.source(*reader.rows(), None, options),
                        share=each.settings.share,
                        view=each.view,
                    )
                    for entropy in (Seeded(seed), Silent())
                )
                for one, other, law in zip(noisy, true, each.settings.laws(layout), strict=True):
                    drawn.append((one - other).ravel() / law.sigma)
        return np.concatenate(drawn)

    def test_noise_is_of_the_claimed_size_neither_less_nor_more(self, reader):
        if not reader.delta:
            pytest.skip("Laplace noise has a test of its own: statistical/test_corpus_noise.py")
        size = len(self.noise(reader, 1))
        noise = self.noise(reader, -(-2_000 // size))
        assert stats.kstest(noise, "norm").pvalue > ALPHA
        degrees = len(noise)
        for factor, fits in ((1.0, True), (2 / 3, False), (3 / 2, False)):
            below = stats.chi2.cdf(np.sum((noise / factor) ** 2), degrees)
            assert bool(ALPHA < below < 1 - ALPHA) is fits

    def test_two_builds_have_noise_of_their_own(self, reader):
        rows = reader.rows()
        one, other = (reader.build(*rows) for _ in range(2))
        assert one.private
        assert not same_bits(one, other)
        assert one.receipt.id != other.receipt.id

    # --- what is counted --------------------------------------------------------------------------

    @pytest.mark.parametrize("form", ["account", "three names"])
    def test_a_release_is_counted_once_and_before_its_noise(self, reader, ledger, form):
        counted = (
            {"account": ledger.account("clinic", "eve")}
            if form == "account"
            else {"ledger": ledger, "dataset": "clinic", "analyst": "eve"}
        )
        entropy = Watching(1, ledger)
        made = reader.build(*reader.rows(), entropy=entropy, **counted)
        assert entropy.seen
        assert all(states == [State.SPENT] for states in entropy.seen)
        [spend] = ledger.statement("clinic").spends
        assert spend.receipt == made.receipt
        assert (spend.delta, spend.analyst) == (1e-6, "eve")
        assert same_bits(made, reader.build(*reader.rows(), entropy=Seeded(1)))

    def test_a_budget_without_room_releases_nothing(self, reader, ledger):
        account = ledger.account("clinic")
        reader.build(*reader.rows(), entropy=Seeded(1), account=account)
        entropy = Watching(2, ledger)
        with pytest.raises(BudgetExceeded, match="fits"):
            reader.build(*reader.rows(), entropy=entropy, account=account)
        assert entropy.seen == []
        assert len(ledger.statement("clinic").spends) == 1

    def test_a_job_is_counted_once_too(self, reader, ledger):
        if not reader.mechanism.reads_once:
            pytest.skip("rows are read more than once")
        job = self.job(reader, account=ledger.account("clinic"))
        part = job.partial(reader.sharded(reader.rows(), slice(None)), shard="all")
        entropy = Watching(1, ledger)
        made = job.release([part], expected=["all"], entropy=entropy)
        assert all(states == [State.SPENT] for states in entropy.seen)
        [spend] = ledger.statement("clinic").spends
        assert spend.receipt == made.receipt
        with pytest.raises(BudgetExceeded):
            job.release([part], expected=["all"], entropy=entropy)

    @pytest.mark.parametrize("unit", Unit)
    def test_the_receipt_has_what_was_asked_for(self, reader, unit):
        groups = None if unit is Unit.ROW else np.repeat(np.arange(8), 5)
        made = reader.build(*reader.rows(), groups=groups, entropy=Silent())
        assert (made.guarantee.epsilon, made.guarantee.delta) == (1.0, reader.delta)
        assert made.guarantee.unit == made.receipt.unit == unit
        spent = discreet.combine([made], delta=1e-6)
        assert 0.99 < spent.epsilon <= 1.0 + 1e-9

    # --- what is saved and said -------------------------------------------------------------------

    def test_a_file_brings_the_same_answers_back(self, reader, tmp_path):
        made = reader.build(*reader.rows())
        made.save(tmp_path / "release.safetensors")
        queries = reader.rows(6, seed=9)[0]
        kind = reader.mechanism.answers
        for opened in (
            discreet.load(tmp_path / "release.safetensors"),
            kind.load(tmp_path / "release.safetensors"),
        ):
            assert type(opened) is kind
            assert same_bits(opened, made)
            assert (opened.guarantee, opened.receipt) == (made.guarantee, made.receipt)
            assert str(opened.card) == str(made.card)
            np.testing.assert_array_equal(
                reader.answer(opened, queries), reader.answer(made, queries)
            )

    def test_a_file_of_another_kind_is_refused(self, reader, tmp_path):
        reader.build(*reader.rows()).save(tmp_path / "release.safetensors")
        others = [each.answers for each in registry.MECHANISMS if each is not reader.mechanism]
        assert others
        for kind in others:
            with pytest.raises(CorruptRelease):
                kind.load(tmp_path / "release.safetensors")

    def test_a_file_that_claims_too_much_is_refused(self, reader):
        """A promise that is a little better than its noise does not open."""
        data = registry.to_bytes(reader.build(*reader.rows()))

        def claim(settings_, _):
            settings_["guarantee"]["epsilon"] *= 0.99

        registry.from_bytes(resealed(data, lambda *_: None))
        with pytest.raises(CorruptRelease):
            registry.from_bytes(resealed(data, claim))

    def test_noise_for_tests_is_marked_everywhere(self, reader, tmp_path):
        made = reader.build(*reader.rows(), entropy=Seeded(1))
        assert not made.private
        for text in (repr(made), str(made.card), str(made.guarantee)):
            assert "NOT PRIVATE" in text
        made.save(tmp_path / "release.safetensors")
        for load in (discreet.load, reader.mechanism.answers.load):
            with pytest.warns(NotPrivateWarning):
                load(tmp_path / "release.safetensors")

    @pytest.mark.parametrize("unit", Unit)
    @pytest.mark.parametrize("neighbours", Neighbours)
    def test_the_card_says_who_is_protected_and_how_much(self, reader, unit, neighbours):
        groups = None if unit is Unit.ROW else np.repeat(np.arange(8), 5)
        made = reader.build(*reader.rows(), groups=groups, neighbours=neighbours)
        text, facts = str(made.card), json.loads(json.dumps(made.card.to_dict()))
        assert f"any one {unit} ({neighbours.change})" in text
        assert str(made.guarantee) in text
        promise = Promise.of(made.guarantee, made.receipt)
        assert promise.in_words in text
        assert facts.items() >= promise.facts.items()
        wanted = {"epsilon": 1.0, "delta": reader.delta, "unit": unit, "neighbours": neighbours}
        assert facts.items() >= (wanted | {"private": True}).items()

    def test_a_plan_says_what_to_expect_from_public_numbers(self, reader):
        options = {name: each for name, each in reader.options.items() if name != "rows_hint"}
        name = reader.mechanism.name
        if reader.planned is None:
            with pytest.raises(InvalidInput, match="can be planned"):
                discreet.plan(reader=name, rows=500, key_dim=2, **SPEND, **options)
            return
        made, again = (
            discreet.plan(reader=name, rows=500, key_dim=2, **SPEND, **options, **reader.planned)
            for _ in range(2)
        )
        assert str(made) == str(again)
        assert made.verdict in str(made)
        assert made.to_dict()["rows"] == 500
        careless = discreet.plan(
            reader=name,
            rows=10**7,
            key_dim=2,
            **SPEND,
            **options,
            **reader.planned,
        )
        assert "protects nobody" in careless.warning

    def test_what_is_saved_and_said_does_not_depend_on_how_many_rows_there_are(self, reader):
        one, other = (reader.build(*reader.rows(count), entropy=Silent()) for count in (40, 39))
        files = [registry.to_bytes(each) for each in (one, other)]
        assert len(files[0]) == len(files[1])
        assert one.released.rows is other.released.rows is None
        assert [part.shape for part in parts_of(one)] == [part.shape for part in parts_of(other)]
