"""`discreet.connect`: releases that somebody else serves, asked like those that are here.

Nothing but Python's own library is used. Questions leave this machine: whoever runs the server can
read them. `discreet.load` on a file of one's own shows them to nobody.
"""

import http.client
import ipaddress
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, cast
from urllib.parse import SplitResult, quote, urlsplit

import numpy as np

from discreet import _validate
from discreet._typing import Array
from discreet.errors import DiscreetError, InvalidInput
from discreet.privacy import Card, Guarantee

if TYPE_CHECKING:
    from discreet.text import Answer

# Bytes of an answer, and characters of a sentence, that are believed.
_LARGEST, _LONGEST = 2**28, 500
# What a release may be called.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
# What a server says that others keep busy, and seconds until it is asked again.
_BUSY, _PAUSE = 429, 0.25
# Bytes that a number takes as JSON, at the most, with what stands around it.
_NUMBER = 27


def connect(address: str, token: str | None = None, *, timeout: float = 30.0) -> "Connection":
    """Return what a server of `discreet serve` has, by name.

    Example::

        served = discreet.connect("https://answers.example", token=token)
        answers, stderr = served["memory"].attend(queries, stderr=True)

    Args:
        address: of the server, such as "https://answers.example".
        token: if the server asks for one. It is sent over https, or to this machine, only.
        timeout: seconds that each request may wait for the server.

    Returns:
        A mapping from names to what answers.

    Raises:
        InvalidInput: the address is none, or the token would be sent where others can read it.
        DiscreetError: nobody answers there, or no server of discreet, or the token is not known.
    """
    found = Connection(_Wire(address, token, timeout=timeout))
    _ = found.names
    return found


class Connection(Mapping[str, "Served"]):
    """The releases of a server. Made by `discreet.connect`.

    Args:
        wire: the way to it.
    """

    def __init__(self, wire: "_Wire") -> None:
        self._wire = wire

    @cached_property
    def _listed(self) -> dict[str, Any]:
        found = self._wire.call("/v1")
        with self._wire.believed():
            names = [each["name"] for each in found["releases"]]
            limits = [found["limits"][name] for name in ("queries", "body")]
            if not all(map(_NAME.fullmatch, names)) or not all(map(_is_count, limits)):
                raise ValueError
        return found

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Under which releases are served."""
        return tuple(str(each["name"]) for each in self._listed["releases"])

    def __getitem__(self, name: str) -> "Served":
        if name not in self.names:
            _validate.reject_argument("name", name, f"one of {', '.join(self.names)}")
        about = self._listed["releases"][self.names.index(name)]
        return Served(self._wire, about, self._listed["limits"])

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"<Connection to {self._wire.shown}: {', '.join(self.names)}>"


class Served:
    """A release of a server. It has the methods of what is served; others say what it answers.

    Args:
        wire: the way to it.
        about: what the server says of it.
        limits: of the server.
    """

    def __init__(self, wire: "_Wire", about: Mapping[str, Any], limits: Mapping[str, Any]) -> None:
        self._wire, self.about, self._limits = wire, dict(about), dict(limits)
        with wire.believed():
            self.name, self.kind = str(about["name"]), _printable(str(about["kind"]))
        self._path = f"/v1/{quote(self.name, safe='')}"

    def __repr__(self) -> str:
        return f"<{self.name}: {self.kind}, of {self._wire.shown}>"

    @cached_property
    def _carded(self) -> dict[str, Any]:
        return self._wire.call(f"{self._path}/card")

    @property
    def card(self) -> Card:
        """What is protected, how much, and from what. `str(card)`, `card.to_dict()`."""
        carded = self._carded
        with self._wire.believed():
            lines = [
                (_printable(each["title"]), _printable(each["text"])) for each in carded["lines"]
            ]
            return Card(tuple(carded["card"].items()), tuple(lines))

    @property
    def guarantee(self) -> Guarantee:
        """What is promised."""
        carded = self._carded
        with self._wire.believed():
            given = carded["guarantee"]
            texts: Any = {name: _printable(given[name]) for name in ("neighbours", "unit", "scope")}
            return Guarantee(given["epsilon"], given["delta"], **texts)

    def attend(self, queries: Array, *, stderr: bool = False, member: int | None = None) -> Any:  # noqa: ANN401
        """Return private attention, as `Memory.attend` does.

        Args:
            queries: shape (..., d), or (..., *heads, m, d). Computed in single precision.
            stderr: whether to return standard errors, too.
            member: of the memories of a model: which one.

        Returns:
            Shape (..., d_v). With `stderr`, a pair of arrays of that shape.
        """
        more = {} if member is None else {"member": member}
        return self._numbers("attend", queries, stderr=stderr, **more)

    def query(self, points: Array, *, stderr: bool = False) -> Any:  # noqa: ANN401
        """Return sums of distances, as `Distances.query` does.

        Args:
            points: shape (..., d).
            stderr: whether to return standard errors, too.
        """
        return self._numbers("query", points, stderr=stderr)

    def predict(self, queries: Any, *, stderr: bool = False) -> Any:  # noqa: ANN401
        """Return predicted numbers, or labels, as the model does.

        Args:
            queries: shape (m, d); of a model of a table, its columns by name, or a frame.
            stderr: of numbers: whether to return standard errors, too.
        """
        if "classes" not in self.about:
            return self._numbers("predict", queries, stderr=stderr)
        if stderr:
            _validate.reject_argument("stderr", stderr, "False: labels have none")
        return self._predicted(queries, "answers")

    def probabilities(self, queries: Any) -> Array:  # noqa: ANN401
        """Return the probability of each class, shape (m, C).

        Args:
            queries: as for `predict`.
        """
        if "classes" not in self.about:
            self._refuse("probabilities")
        return self._predicted(queries, "probabilities")

    def predict_proba(self, queries: Any) -> Array:  # noqa: ANN401
        """Return the same under its name in scikit-learn, for those who have an estimator there.

        Args:
            queries: as for `predict`.
        """
        return self.probabilities(queries)

    def logits(self, queries: Any) -> Array:  # noqa: ANN401
        """Return what a classifier decides by, shape (m, C), as `SoftmaxRegression.logits` does.

        Args:
            queries: as for `predict`.

        Raises:
            InvalidInput: it is none, or one that decides by something else.
        """
        return self._logits(queries, "logits")

    def stderr(self, queries: Any) -> Array:  # noqa: ANN401
        """Return the standard error of each row's logits, as `SoftmaxRegression.stderr` does.

        Args:
            queries: as for `predict`.

        Returns:
            Shape (m, 1).

        Raises:
            InvalidInput: likewise, or its file does not have what errors are read from.
        """
        return self._logits(queries, "stderr")[:, :1]

    def _logits(self, queries: Any, name: str) -> Array:  # noqa: ANN401
        if "classes" not in self.about:
            self._refuse("logits")
        return self._predicted(queries, name, stderr=True)

    def map(self) -> "list[Answer]":
        """Return what texts say about every topic, as `Corpus.map` does."""
        from discreet.text.answers import Answer

        if self.about.get("verb") != "ask":
            self._refuse("map")
        found = self._wire.call(f"{self._path}/topics")
        with self._wire.believed():
            return [Answer.from_dict(each) for each in found["topics"]]

    def ask(self, question: str, *, blank: str | None = None, topics: int = 3) -> "Answer":
        """Return what texts say about a question, as `Corpus.ask` does.

        Args:
            question: in words.
            blank: a sentence with ___ in the answer's place.
            topics: how many of the nearest are listed.
        """
        fields = {"question": question, "topics": topics}
        fields |= {} if blank is None else {"blank": blank}
        return self._answer(fields)

    def ask_topic(self, topic: str) -> "Answer":
        """Return what the texts nearest to one public topic are, as `Corpus.ask_topic` does.

        Args:
            topic: its name.
        """
        return self._answer({"topic": topic})

    def _answer(self, fields: Mapping[str, Any]) -> "Answer":
        from discreet.text.answers import Answer

        found = self._asked("ask", fields)
        with self._wire.believed():
            return Answer.from_dict(found["answers"])

    def _numbers(self, verb: str, queries: Any, *, stderr: bool, **more: Any) -> Any:  # noqa: ANN401
        """Return answers in the precision of the queries, asked in as many parts as it takes."""
        parts = [
            self._asked(verb, {**fields, **more, "stderr": bool(stderr)})
            for fields in self._parts(queries)
        ]
        dtype = getattr(queries, "dtype", None)
        kind = np.float32 if dtype == np.float32 else np.float64

        def joined(name: str) -> Array:
            return self._joined(parts, name, np.shape(queries)[:-1], dtype=kind)

        return (joined("answers"), joined("stderr")) if stderr else joined("answers")

    def _predicted(self, queries: Any, name: str, *, stderr: bool = False) -> Array:  # noqa: ANN401
        """Return one field of what a classifier answers, asked in as many parts as it takes."""
        parts = [
            self._asked("predict", {**fields, "stderr": stderr}) for fields in self._parts(queries)
        ]
        if not all(name in each for each in parts):
            raise InvalidInput(f"Expected a release with {name}, and {self.name} has none.")
        rows = (len(_rows(queries)),) if self.about.get("columns") else np.shape(queries)[:-1]
        return self._joined(parts, name, rows)

    def _joined(
        self,
        parts: Sequence[Mapping[str, Any]],
        name: str,
        asked: tuple[int, ...],
        *,
        dtype: Any = None,  # noqa: ANN401
    ) -> Array:
        """Return one field of answers, if there is one for each of what was asked."""
        with self._wire.believed():
            found = [np.asarray(each[name], dtype=dtype) for each in parts]
            whole = found[0] if len(found) == 1 else np.concatenate(found)
            if not self.about.get("heads") and whole.shape[: len(asked)] != asked:
                raise ValueError
            return whole

    def _parts(self, queries: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401
        """Yield the fields of requests, none of them larger than the server takes."""
        if self.about.get("columns"):
            rows = _rows(queries)
            most = int(self._limits["queries"])
            for start in range(0, max(len(rows), 1), most):
                yield {"rows": rows[start : start + most]}
            return
        given = np.asarray(queries)
        if given.dtype.kind not in "iufb":
            _validate.reject("queries.dtype", str(given.dtype), "real numbers")
        given = given.astype(np.float64)
        if not np.all(np.isfinite(given)):
            raise InvalidInput("Expected queries to have no NaN and no infinity.")
        if given.ndim != 2:
            yield {"queries": given.tolist()}
            return
        fit = int(self._limits["body"]) // (_NUMBER * given.shape[1] + _NUMBER) - 1
        most = max(min(int(self._limits["queries"]), fit), 1)
        for start in range(0, max(len(given), 1), most):
            yield {"queries": given[start : start + most].tolist()}

    def _asked(self, verb: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        if self.about.get("verb") != verb:
            self._refuse(verb)
        return self._wire.call(f"{self._path}/{verb}", fields)

    def _refuse(self, verb: str) -> NoReturn:
        raise InvalidInput(
            f"Expected {self.about.get('verb')} in place of {verb}: {self.name} is a {self.kind}."
        )


def _printable(text: str) -> str:
    """Return a text without what could move the cursor of a terminal.

    Args:
        text: of a server.
    """
    return "".join(filter(str.isprintable, text))


def _is_count(number: object) -> bool:
    return isinstance(number, int) and number >= 1


def _rows(given: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """Return columns by name, or a frame, as rows; what is missing as None."""
    if not isinstance(given, Mapping) and not hasattr(given, "columns"):
        raise InvalidInput("Expected columns by name, or a frame: this model is one of a table.")
    names = [str(each) for each in (given if isinstance(given, Mapping) else given.columns)]
    columns = [np.asarray(given[name], dtype=object).tolist() for name in names]
    if len({len(each) for each in columns}) > 1:
        raise InvalidInput("Expected all columns to have one value for each row.")
    return [dict(zip(names, map(_cell, row), strict=True)) for row in zip(*columns, strict=True)]


def _cell(value: Any) -> Any:  # noqa: ANN401
    """Return a value of a cell as JSON has it."""
    plain = value.item() if isinstance(value, np.generic) else value
    if plain is None or plain != plain or type(plain).__name__ in {"NaTType", "NAType"}:  # noqa: PLR0124
        return None
    return plain if isinstance(plain, bool | int | float | str) else str(plain)


class _Wire:
    """Requests to one server, each over a connection of its own.

    Redirects are not followed: a token is for the server that it was given for.

    Args:
        address: of the server.
        token: of whoever asks.
        timeout: seconds.
    """

    def __init__(self, address: str, token: str | None, *, timeout: float) -> None:
        self._to = _split(address)
        self._timeout = _validate.real("timeout", timeout, above=0)
        self.shown = f"{self._to.scheme}://{self._to.netloc}"
        self._headers = {"accept": "application/json"}
        if token is None:
            return
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            raise InvalidInput("Expected token to be a text of printable letters.")
        if self._to.scheme != "https" and not _is_here(self._to.hostname or ""):
            raise InvalidInput("Expected https for a token: others could read it on its way.")
        self._headers["authorization"] = f"Bearer {token}"

    def call(self, path: str, fields: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return what the server answers; one that is busy is asked again until time is up.

        Args:
            path: from the root of the server.
            fields: of a question; None for what takes none.
        """
        end = time.monotonic() + self._timeout
        status, data = self._exchanged(path, fields)
        while status == _BUSY and time.monotonic() < end:
            time.sleep(_PAUSE)
            status, data = self._exchanged(path, fields)
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            found = None
        with self.believed():
            if not isinstance(found, dict):
                raise TypeError
        if status == 200:
            return cast("dict[str, Any]", found)
        said = _printable(str(found.get("error", "")))[:_LONGEST]
        said = said or f"Expected an answer of {self.shown}, and got status {status}."
        raise (InvalidInput if status in {400, 413} else DiscreetError)(said)

    @contextmanager
    def believed(self) -> Iterator[None]:
        """Say that this is no server of discreet where what it sent is not what those send."""
        try:
            yield
        except (AttributeError, LookupError, TypeError, ValueError):
            raise DiscreetError(f"Expected a server of discreet at {self.shown}.") from None

    def _exchanged(self, path: str, fields: Mapping[str, Any] | None) -> tuple[int, bytes]:
        safe = self._to.scheme == "https"
        made = http.client.HTTPSConnection if safe else http.client.HTTPConnection
        connection = made(self._to.hostname or "", self._to.port, timeout=self._timeout)
        body, headers = None, dict(self._headers)
        if fields is not None:
            body = json.dumps(fields, allow_nan=False).encode()
            headers["content-type"] = "application/json"
        try:
            method = "GET" if body is None else "POST"
            connection.request(method, self._to.path.rstrip("/") + path, body, headers)
            response = connection.getresponse()
            data = response.read(_LARGEST + 1)
        except (OSError, http.client.HTTPException) as error:
            why = "in time" if isinstance(error, TimeoutError) else f"({type(error).__name__})"
            raise DiscreetError(
                f"Expected {self.shown} to answer, and it does not {why}."
            ) from None
        finally:
            connection.close()
        if len(data) > _LARGEST:
            raise DiscreetError(f"Expected an answer of at most {_LARGEST:,} bytes.")
        return response.status, data


def _split(address: str) -> SplitResult:
    wanted = 'the address of a server, such as "https://answers.example"'
    if not isinstance(address, str) or not address.isascii() or not address.isprintable():
        _validate.reject_argument("address", address, wanted)
    try:
        found = urlsplit(address)
        _ = found.port
    except ValueError:
        _validate.reject_argument("address", address, wanted)
    odd = found.query or found.fragment or "@" in found.netloc or " " in address
    if found.scheme not in {"http", "https"} or not found.hostname or odd:
        _validate.reject_argument("address", address, wanted)
    return found


def _is_here(host: str) -> bool:
    """Return whether a name is one of this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
