"""Everything that discreet raises or warns about.

::

    Exception
    └── DiscreetError             whatever discreet raises on purpose
        ├── InvalidInput          an argument is not what it should be (also a ValueError)
        ├── BudgetExceeded        the request needs more privacy budget than it was given
        ├── CorruptRelease        a file is not a release, or not the one that was written
        └── LedgerError           the ledger cannot be read or written, so nothing was released
    UserWarning
    ├── MostlyNoiseWarning        answers of a release are predicted to be mostly noise
    ├── NotCoveredWarning         queries are unlike the public rows that a memory was made with
    ├── NotPrivateWarning         this object was made with a test source of noise
    └── PrivacyLeakWarning        what you are about to do would void a guarantee

Messages name public parameters only: no message carries a value that was computed from private
rows. An `InvalidInput` about one argument also carries what its sentence is made of, so that a
command line, a form or a server can say it in words of its own.
"""


class DiscreetError(Exception):
    """Base of every exception that discreet raises on purpose."""


class InvalidInput(DiscreetError, ValueError):  # noqa: N818 (the name says what happened)
    """An argument has the wrong type, shape or range; the message names it and what it got.

    Args:
        message: the whole sentence, in the library's words.
        argument: the argument's name, if the error is about one.
        value: what it was given: a number, a short text, a shape or None; of all else only the
            type, as in "<list>".
        wanted: what it should have been, as it follows "Expected ... to be".
        needs: another argument that this one takes, and that is missing.
    """

    def __init__(
        self,
        message: str = "",
        *,
        argument: str | None = None,
        value: object = None,
        wanted: str | None = None,
        needs: str | None = None,
    ) -> None:
        super().__init__(message)
        self.argument = argument
        self.value = value
        self.wanted = wanted
        self.needs = needs

    def copy(self) -> "InvalidInput":
        """Return the same error without its traceback, its notes and what it came from."""
        return type(self)(
            str(self),
            argument=self.argument,
            value=self.value,
            wanted=self.wanted,
            needs=self.needs,
        )


class BudgetExceeded(DiscreetError):  # noqa: N818
    """The request cannot be met within the privacy budget that it was given."""


class CorruptRelease(DiscreetError):  # noqa: N818
    """A released file is truncated, altered, or not a release at all."""


class LedgerError(DiscreetError):
    """A ledger cannot be read or written, or a file is none. Nothing was released."""


class MostlyNoiseWarning(UserWarning):
    """Answers of this release are predicted to be mostly noise: signal below one standard error.

    Decided from public numbers: options, a public number of rows, and the noisy release itself.
    """


class NotCoveredWarning(UserWarning):
    """Most queries of a batch are unlike the public rows that a memory's landmarks were made of."""


class NotPrivateWarning(UserWarning):
    """An object was made with a test source of noise and protects nobody."""


class PrivacyLeakWarning(UserWarning):
    """An action is about to void, or has voided, a privacy guarantee."""
