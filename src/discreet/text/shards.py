"""Texts that lie in many places: counted near public topics anywhere, released in one place, once.

Only counts of topics, by label, come from shards. Words and facts need several passes over all
texts, and so one place where these are.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from discreet.errors import InvalidInput
from discreet.ledger import Account, Ledger
from discreet.ledger.ledger import account_of
from discreet.noise import Entropy
from discreet.provenance import Stated
from discreet.readers.table.mechanism import TABLE
from discreet.shards import Job
from discreet.sums.mechanism import ReleaseOptions
from discreet.sums.settings import Shape
from discreet.text.building import Parts
from discreet.text.corpus import Corpus, plan_of
from discreet.text.encoders import Encodable, TextEncoder, travelling, unloaded
from discreet.text.encoders import encoder as encoder_of
from discreet.text.source import chunks_of, encoded
from discreet.text.topics import GivenTopics, PublicWords


class TextJob:
    """One corpus of texts that lie in many places, under one ε.

    Each shard of the texts has a public name and becomes sealed bytes (`partial`), anywhere;
    `release` takes them all, and adds the noise, once::

        job = TextJob(encoder="static", topics=names, classes=labels, epsilon=1.0, rows_hint=50_000)
        parts = [job.partial(texts, labels, shard=name) for name, texts, labels in shards]
        corpus = job.release(parts, expected=names)

    A job can be pickled, so that it travels to workers, which read the encoder anew. Whoever has
    it, or a copy, has its key, and can read the exact counts of all shards (`discreet.shards.Job`).

    Args:
        encoder: what makes vectors of texts, as for `Corpus.build`; a callable has to be one that
            can be pickled, if the job is.
        topics: public topics, as for `Corpus.build`; not `PublicWords`.
        classes: all labels that there may be; None if texts have none.
        by_person: whether a person with many texts is protected: then texts come with people. All
            texts of a person are in one shard.
        epsilon: above 0.
        rows_hint: a public, rounded number of all texts; None to keep all topics.
        person_texts: the texts of a person count for so many, at the most, all together.
        account: where the release is counted, if anywhere: `Ledger.account(dataset, analyst)`.
        ledger: or its parts: a `discreet.ledger.Ledger`,
        dataset: the name that the texts have there,
        analyst: and who asks, if that is to be known.
        stated: where the release comes from, in your words and public: a mapping with some
            of "data", "builder", "purpose", "contact" and "date", or a `discreet.Stated`. In
            the file and on the card, marked as stated by the builder.
    """

    def __init__(
        self,
        *,
        encoder: Encodable,
        topics: GivenTopics,
        classes: Sequence[Any] | None = None,
        by_person: bool = False,
        epsilon: float = 1.0,
        rows_hint: int | None = 8_000,
        person_texts: float = 1.0,
        account: Account | None = None,
        ledger: Ledger | None = None,
        dataset: str | None = None,
        analyst: str | None = None,
        stated: Stated | Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(topics, PublicWords):
            raise InvalidInput(
                "Expected topics that are known beforehand: finding them needs all texts at once."
            )
        made = encoder_of(encoder)
        options = ReleaseOptions(
            epsilon=epsilon,
            delta=1e-6,  # of which nothing is spent
            rows_hint=rows_hint,
            group_rows=person_texts if by_person else 1.0,
            stated=stated,
        )
        plan = plan_of(options, made, topics=topics, classes=classes, people=by_person)
        if plan.topics is None:
            raise InvalidInput("Expected topics.")
        counted = plan.counted(plan.topics)
        # What a worker makes the encoder of: one that is loaded does not travel.
        self._given = encoder
        self._plan = replace(plan, topics=counted)
        self._threshold = counted.threshold(made)
        self.__dict__["_encoder"] = made
        self._job = Job.of(
            TABLE,
            Shape(heads=(), key_dim=made.dim, value_dim=1),
            self._plan.table_options(counted, self._plan.classes),
            unit=self._plan.unit,
            account=account_of(ledger, dataset, analyst, account),
        )

    def __getstate__(self) -> dict[str, Any]:
        plan = self._plan
        bare = replace(plan, encoder=unloaded(plan.encoder.name, plan.encoder.dim))
        given = travelling(self._given) if isinstance(self._given, TextEncoder) else self._given
        kept = {"_given": given, "_plan": bare, "_threshold": self._threshold}
        return {**kept, "_job": self._job}

    def __repr__(self) -> str:
        return f"<TextJob of {self._job!r}>"

    @cached_property
    def _encoder(self) -> TextEncoder:
        return encoder_of(self._given)

    def partial(
        self,
        texts: Any,  # noqa: ANN401 (lists, columns, tables, files, chunks)
        labels: Any = None,  # noqa: ANN401
        people: Any = None,  # noqa: ANN401
        *,
        shard: str,
        column: str = "text",
        cache: str | os.PathLike[str] | None = None,
        progress: bool = False,
    ) -> bytes:
        """Return the exact counts of the texts of one shard, sealed.

        Args:
            texts: as for `Corpus.build`.
            labels: the label of each text, if there are classes.
            people: whose each text is, if the job is by person.
            shard: a public name for these texts. However often they are counted, by tasks that were
                retried or run twice: under one name they count once.
            column: the name of the column with the texts, of a table.
            cache: a folder for vectors that are there already the next time: as private as texts.
            progress: whether to show a progress bar.
        """
        private = encoded(
            chunks_of(texts, labels, people, column),
            self._encoder,
            classes=self._plan.classes,
            marks=None,
            most=1,
            keep=False,
            progress=progress,
            cache=cache,
        )
        if (private.people is not None) is not self._plan.people:
            raise InvalidInput("Expected people where the job is by person, and only there.")
        rows = (private.vectors, private.labels[:, None].astype(float))
        return self._job.partial(rows, shard=shard, groups=private.people)

    def merge(self, parts: Iterable[bytes]) -> bytes:
        """Return the counts of several sealed partials, sealed. In any order, the same bits.

        Args:
            parts: sealed partials of this job, of different shards.
        """
        return self._job.merge(parts)

    def release(
        self, parts: Iterable[bytes], *, expected: Iterable[str], entropy: Entropy | None = None
    ) -> Corpus:
        """Merge all shards, add the noise, and return the corpus. Once, as `Job.release`.

        Args:
            parts: sealed partials, merged or not, in any order.
            expected: the names of all shards, each once.
            entropy: where the noise comes from; by default the operating system.
        """
        table = self._job.release(parts, expected=expected, entropy=entropy).released
        plan = replace(self._plan, encoder=self._encoder)
        corpus = Corpus(
            plan,
            Parts(topics=plan.topics, table=table, words=None, names=None),
            threshold=self._threshold,
            words=None,
            guarantee=table.guarantee,
            receipt=table.receipt,
        )
        corpus.warn_if_noise()
        return corpus
