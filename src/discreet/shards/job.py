"""Public settings and one key. Rows are added up anywhere, and released in one place, once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from discreet import _validate
from discreet._typing import Array
from discreet.errors import BudgetExceeded, InvalidInput
from discreet.ledger import Account, Ledger
from discreet.ledger.ledger import account_of
from discreet.noise import Entropy
from discreet.privacy import rounded_up
from discreet.readers.attention.options import BuildOptions, Options
from discreet.readers.registry import mechanism_named
from discreet.shards import exchange
from discreet.stream import Stream
from discreet.sums.door import Latch, release
from discreet.sums.mechanism import Mechanism, ReleaseOptions, shows_options
from discreet.sums.partial import (
    Partial,
    check_shards,
    checked_name,
    fingerprint,
    names_of_shards,
    new_key,
)
from discreet.sums.settings import Settings, Shape, Unit
from discreet.sums.source import Chunk, RowSource, tables_of

# Keys and values of one shard; or chunks of them, with or without the record of each row.
ShardRows = tuple[Array, Array] | Iterable[Sequence[Array]]

_COPY = "this is a copy, for workers; the job itself releases, in the process that made it"


@dataclass(frozen=True)
class JobSecret:
    """What travels to workers besides the public settings. Prints no key.

    Attributes:
        key: that shards are sealed with.
        arithmetic: the fingerprint of the machine that made the job.
    """

    key: bytes = field(repr=False)
    arithmetic: str


@shows_options(Options, BuildOptions.__annotations__)
class Job:
    """One release of rows that lie in many places, under one (epsilon, delta).

    Each shard of the rows has a name and becomes sealed bytes (`partial`), anywhere; `release`
    takes them all, and adds the noise, once::

        job = Job(key_dim=64, value_dim=10, epsilon=1.0, delta=1e-6, rows_hint=1_000_000)
        parts = [job.partial((keys, values), shard=name) for name, keys, values in shards]
        memory = job.release(parts, expected=names)

    A job can be pickled, so that it travels to workers. Whoever has it, or a copy, has its key, and
    can read the exact sums of all shards: let it travel over encrypted connections only. What it
    seals can be stored and sent anywhere.

    Args:
        key_dim: width of keys.
        value_dim: width of values.
        heads: leading axes of keys and values; () for one head.
        by_record: whether records of many rows are protected: then rows come with groups.
        reader: what is built: "attention", or another that reads rows once ("least_squares",
            "distances", "table"); then the options are those of its own front door. (Of a table:
            `points`, and `classes` if rows have labels, whose places are values of width 1.)
        account: where the release is counted, if anywhere: `Ledger.account(dataset, analyst)`.
        ledger: or its parts: a `discreet.ledger.Ledger`,
        dataset: the name that the rows have there,
        analyst: and who asks, if that is to be known.
        **options: as for `discreet.build`.
    """

    def __init__(
        self,
        *,
        key_dim: int,
        value_dim: int,
        heads: tuple[int, ...] = (),
        by_record: bool = False,
        reader: str = "attention",
        account: Account | None = None,
        ledger: Ledger | None = None,
        dataset: str | None = None,
        analyst: str | None = None,
        **options: Any,  # noqa: ANN401 (the reader's own)
    ) -> None:
        mechanism = read_once(reader)
        shape = Shape(heads=tuple(heads), key_dim=key_dim, value_dim=value_dim)
        unit = Unit.RECORD if by_record else Unit.ROW
        counted = account_of(ledger, dataset, analyst, account)
        self._open(mechanism, shape, mechanism.options(**options), unit, counted)

    @classmethod
    def of(
        cls,
        mechanism: Mechanism[Any, Any, Any],
        shape: Shape,
        options: ReleaseOptions,
        *,
        unit: Unit,
        account: Account | None,
    ) -> Self:
        """Return the job of a mechanism, whose options have been checked.

        Args:
            mechanism: what is built.
            shape: of the rows: heads, and widths of keys and values.
            options: those of the mechanism.
            unit: a row, or a record of many rows.
            account: where the release is counted, if anywhere.
        """
        job = cls.__new__(cls)
        job._open(mechanism, shape, options, unit, account)  # noqa: SLF001 (its own)
        return job

    def _open(
        self,
        mechanism: Mechanism[Any, Any, Any],
        shape: Shape,
        options: ReleaseOptions,
        unit: Unit,
        account: Account | None,
    ) -> None:
        """Resolve everything that is public, and make a key."""
        self._account = account
        self._mechanism: Mechanism[Any, Any, Any] | None = mechanism
        self._settings: Settings[Any] = mechanism.resolve([shape], options, unit=unit)
        self._settings.check(account)  # before a row is read, and again before the noise
        self._key = new_key()
        self._arithmetic = fingerprint()
        self._latch = Latch("job")
        options.warn_if_nobody_is_protected()

    @classmethod
    def copy_of(cls, secret: JobSecret, settings: Settings[Any]) -> Self:
        """Return what a worker needs: a job that adds up and merges, and releases nothing.

        Args:
            secret: the key of the job.
            settings: the public settings.
        """
        copy = cls.__new__(cls)
        copy.__setstate__((secret, settings))
        return copy

    @classmethod
    def of_step(cls, stream: Stream, step: str) -> Self:
        """Return a job that adds up the rows of one step of a stream, anywhere, as a copy does.

        `Stream.append_parts` takes what it seals.

        Args:
            stream: whose widths are known: with `key_dim` and `value_dim`, or after a step.
            step: the public name of the step. What is sealed for one is refused in another.
        """
        _validate.instance("stream", stream, Stream)
        return cls.copy_of(JobSecret(stream.step_key(step), fingerprint()), stream.settings)

    def __getstate__(self) -> tuple[JobSecret, Settings[Any]]:
        return JobSecret(self._key, self._arithmetic), self._settings

    def __setstate__(self, state: tuple[JobSecret, Settings[Any]]) -> None:
        secret, self._settings = state
        self._account = self._mechanism = None  # a copy releases nothing
        self._key, self._arithmetic = secret.key, secret.arithmetic
        self._latch = Latch("job")

    def __repr__(self) -> str:
        epsilon = rounded_up(self._settings.privacy.epsilon)
        return f"<Job: ε = {epsilon}, unit {self._settings.unit}, with a key>"

    @property
    def settings(self) -> Settings[Any]:
        """The public settings."""
        return self._settings

    @property
    def by_record(self) -> bool:
        """Whether records of many rows are protected."""
        return self._settings.unit is Unit.RECORD

    @property
    def widths(self) -> tuple[int, int]:
        """Of keys and values."""
        [layout] = self._settings.layouts
        return layout.kernel.dim, layout.value_width

    def partial(
        self, rows: ShardRows, *, shard: str, groups: Array = None, threads: int | None = None
    ) -> bytes:
        """Return the exact sums over the rows of one shard, sealed.

        Args:
            rows: keys (*heads, n, d) and values (*heads, n, d_v); or an iterable of chunks (keys,
                values) or (keys, values, groups), such as `discreet.tables.Rows`.
            shard: a public name for these rows. However often they are added up, by tasks that
                were retried or run twice: under one name they count once.
            groups: the record of each row, shape (n,), if the unit is a record. A record lies in
                one shard, and within one chunk of it.
            threads: the most to use; by default one for each processor.
        """
        if exchange.is_part_name(checked_name(shard)):
            _validate.reject_argument(
                "shard", shard, "another name: only parts of a shuffle have such names"
            )
        return self._partial(_chunks(rows, groups), shard, threads).seal(self._key)

    def _partial(self, chunks: Iterable[Chunk], shard: str, threads: int | None) -> Partial[Any]:
        if fingerprint() != self._arithmetic:
            raise InvalidInput(
                "Expected a processor that computes exp, cos and sin to the bits of the one that "
                "made this job: use machines of one kind."
            )
        if threads is not None:
            threads = _validate.whole("threads", threads, at_least=1)
        return Partial.of_chunks(chunks, self._settings, shard=shard, threads=threads)

    def merge(self, parts: Iterable[bytes]) -> bytes:
        """Return the sums of several sealed partials, sealed. In any order, the same bits.

        Args:
            parts: sealed partials of this job, of different shards.

        Raises:
            InvalidInput: a shard is there twice.
            CorruptRelease: sealed bytes were altered, or are of another job.
        """
        return self._merged(parts).seal(self._key)

    def scatter(
        self, rows: ShardRows, *, shard: str, parts: int, groups: Array = None
    ) -> list[bytes]:
        """Return the rows of one shard, sealed, divided by record: the first half of a shuffle.

        Args:
            rows: as for `partial`; a record may lie in any number of chunks and shards.
            shard: a public name for these rows.
            parts: by so many; a record is in the same part everywhere.
            groups: the record of each row, shape (n,).
        """
        self._check_records()
        return exchange.scatter(
            _chunks(rows, groups),
            shard=checked_name(shard),
            parts=_validate.whole("parts", parts, at_least=1),
            digest=self._settings.digest,
            key=self._key,
        )

    def gather(
        self,
        pieces: Iterable[bytes],
        *,
        part: int,
        parts: int,
        expected: Iterable[str],
        threads: int | None = None,
    ) -> bytes:
        """Return the exact sums over all records of one part, sealed: the second half of a shuffle.

        The shard's name is `exchange.part_name(part, parts)`.

        Args:
            pieces: what `scatter` made of every shard for this part.
            part: from 0 on.
            parts: how many there are.
            expected: the names of all shards.
            threads: the most to use; by default one for each processor.
        """
        self._check_records()
        (keys, values, groups), origin = exchange.gather(
            pieces,
            part=part,
            parts=parts,
            expected=names_of_shards(expected),
            digest=self._settings.digest,
            key=self._key,
        )
        chunks = [(tables_of([(keys, values)]), groups)]
        sums = self._partial(chunks, exchange.part_name(part, parts), threads)
        # No other part of the same origin has any of these records: their ids need not travel.
        return replace(sums, ids=frozenset(), origin=origin).seal(self._key)

    def release(
        self, parts: Iterable[bytes], *, expected: Iterable[str], entropy: Entropy | None = None
    ) -> Any:  # noqa: ANN401 (what the reader makes of it)
        """Merge all shards, add the noise, and return what answers from it. Once.

        A shard that is missing, repeated, of another job or altered is refused: then nothing is
        released and nothing spent, and the job can go on.

        Args:
            parts: sealed partials, merged or not, in any order.
            expected: the names of all shards, each once.
            entropy: where the noise comes from; by default the operating system.

        Warns with `MostlyNoiseWarning` if answers are predicted to be mostly noise.

        Raises:
            InvalidInput: a shard is missing, too many, or there twice.
            CorruptRelease: sealed bytes were altered, or are of another job.
            BudgetExceeded: it was released before, or is a copy; or the ledger has too little left.
            LedgerError: the ledger cannot be written, and nothing was released.
        """
        if entropy is not None:
            _validate.instance("entropy", entropy, Entropy)
        names = names_of_shards(expected)
        exchange.check_whole(names)
        mechanism = self._checked()
        total = self._merged(parts)
        check_shards(total.shards, names)
        with self._latch.releasing():
            released = release(total, entropy=entropy, account=self._account, latch=self._latch)
        [answers] = mechanism.read(released)
        return answers

    def _checked(self) -> Mechanism[Any, Any, Any]:
        """Return what is built, if this may release it."""
        if self._mechanism is None:
            raise BudgetExceeded(f"Expected a job that can be released: {_COPY}.")
        self._latch.check()
        return self._mechanism

    def _merged(self, parts: Iterable[bytes]) -> Partial[Any]:
        if isinstance(parts, bytes | str) or not isinstance(parts, Iterable):
            _validate.reject_argument("parts", parts, "an iterable of sealed bytes")
        opened = (Partial.unseal(data, self._key, self._settings) for data in parts)
        return Partial.merged(self._settings, opened)

    def _check_records(self) -> None:
        if not self.by_record:
            raise InvalidInput("Expected a job with by_record=True: rows alone need no shuffle.")


def _chunks(rows: ShardRows, groups: Array) -> Iterable[Chunk]:
    """Return the tables of a shard, and the record of each row, chunk by chunk."""
    keys, values = rows if isinstance(rows, tuple) and len(rows) == 2 else (rows, None)
    return RowSource.of(keys, values, groups).chunks()


def read_once(reader: str) -> Mechanism[Any, Any, Any]:
    """Return the mechanism of that name, if rows can be added up in many places for it."""
    mechanism = mechanism_named(reader)
    if not mechanism.reads_once:
        _validate.reject_argument("reader", reader, "one that reads rows once")
    return mechanism
