"""What `stream create`, `append` and `export` do: a key, a folder, steps of rows, and a release.

The key is a file of its own, that only its owner can read. It is never printed.
"""

import functools
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from discreet import _validate
from discreet._validate import warn
from discreet.cli.files import check_output, output_file
from discreet.cli.parsing import parse_stated
from discreet.cli.releases import public_rows, to_build
from discreet.cli.shell import Kept, already_written, has_terminal, print_json, print_page
from discreet.cli.stream_noise import verdict
from discreet.errors import DiscreetError, InvalidInput, PrivacyLeakWarning
from discreet.ledger import Ledger
from discreet.noise.correlated import Reading, ReadingKind
from discreet.stream import Stream
from discreet.stream.published import SETTINGS
from discreet.sums.container import to_bytes
from discreet.sums.forecast import participating
from discreet.sums.settings import Unit

_KEY = re.compile(rb"\s*([0-9a-fA-F]{64})\s*")

# No file of a key is longer, whatever blanks there are in it.
_LONGEST_KEY_FILE = 256

# Options that one reader takes and the other does not, with what they are if they are left out.
_OF_READERS: dict[str, dict[str, object]] = {
    "attention": {
        "scale": None,
        "kernel": "auto",
        "features": None,
        "goal": "rank",
        "reference": None,
        "query_norm": 1.0,
    },
    "least_squares": {"feature_kind": "auto", "ridge": 0.5, "share": None},
}


def create_stream(
    folder: Path,
    *,
    key_file: Path,
    reader: str,
    heads: str | None,
    public: Path | None,
    reference: Path | None,
    ledger: str | None,
    stated: Sequence[str] | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401 (those of `Stream`)
) -> None:
    """Begin a stream in a folder, and make its key if there is none.

    Args:
        folder: of the stream; there is none in it.
        key_file: with the key, or where to write one.
        reader: what is made of each state.
        heads: of keys and values, as they were typed.
        public: a file of public rows.
        reference: a file of points to read near.
        ledger: the file, or the database, of the ledger that counts it.
        stated: by the builder, as it was typed.
        as_json: whether to print JSON.
        **options: of `Stream`.
    """
    _check_folder(folder, key_file)
    taken = _of_reader(reader, {**options, "reference": public_rows(reference, "reference")})
    chosen = _one_of_each(taken)
    said = parse_stated(stated)
    with _key_of_new(folder, key_file) as (key, made):
        stream = Stream(
            folder,
            key=key,
            reader=reader,
            heads=parse_heads(heads),
            public_rows=public_rows(public),
            ledger=None if ledger is None else Ledger(ledger),
            stated=said,
            **chosen,
        )
    with already_written(folder):
        if as_json:
            facts = {"folder": str(folder), "key_file": str(key_file), "new_key": made}
            print_json({**facts, "guarantee": str(stream.guarantee), "steps": stream.horizon})
            return
        if made:
            print_page(
                f"{key_file}: a new key, which only you can read. Without it the stream cannot go "
                "on; with it and the folder, exact sums can be read: keep them apart."
            )
        sums = stream.settings
        print_page(f"{folder}: {stream.guarantee}")
        if sums.continual is not None:
            who = participating(sums.continual, sums.unit, sums.group_rows)
            print_page(f"It is for {who}.")


def _check_folder(folder: Path, key_file: Path) -> None:
    """Raise `InvalidInput` unless a stream can begin there, before a key is made."""
    if (folder / SETTINGS).exists():
        raise InvalidInput(
            f"Expected {folder} to have no stream in it yet: discreet stream append goes on with "
            "one."
        )
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"Expected {folder} to be a folder, and it is something else.")
    if key_file.resolve().is_relative_to(folder.resolve()):
        raise InvalidInput(
            f"Expected --key-file {key_file} not to lie in {folder}: whoever got the folder would "
            "have the key."
        )


def _of_reader(reader: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that a reader takes, if no other was given."""
    if reader not in _OF_READERS:
        _validate.reject_argument("reader", reader, "attention or least_squares")
    taken = dict(options)
    for other, names in _OF_READERS.items():
        for name, usual in names.items():
            if other != reader and taken.pop(name) != usual:
                option = name.replace("_", "-")
                raise InvalidInput(f"Expected --{option} with --reader {other}, not {reader}.")
    if "feature_kind" in taken:
        taken["features"] = taken.pop("feature_kind")
    return taken


def _one_of_each(options: dict[str, Any]) -> dict[str, Any]:
    """Return options of which one of two was given, where two mean the same."""
    if options["window"] is not None and options["half_life"] is not None:
        raise InvalidInput("Expected --window or --half-life, not both.")
    if options["lifetime_rows"] is None:
        return options
    if not options["by_record"]:
        raise InvalidInput(
            "Expected --by-record with --lifetime-rows: without ids, nobody's rows can be counted."
        )
    if options["participations"] != 1 or options["separation"] != 1:
        raise InvalidInput(
            "Expected --lifetime-rows, or --participations and --separation, not both."
        )
    if options["group_rows"] != 1:
        raise InvalidInput("Expected --lifetime-rows or --group-rows, not both.")
    return {name: value for name, value in options.items() if name != "group_rows"}


def parse_heads(text: str | None) -> tuple[int, ...]:
    """Return leading axes of keys and values, typed as 8 or 2,4.

    Args:
        text: as it was typed; None for one head.
    """
    if text is None:
        return ()
    if not re.fullmatch(r"[1-9][0-9]{0,6}(,[1-9][0-9]{0,6})*", text):
        _validate.reject_argument("heads", text, "whole numbers, such as 8 or 2,4")
    return tuple(map(int, text.split(",")))


@contextmanager
def _key_of_new(folder: Path, path: Path) -> Iterator[tuple[bytes, bool]]:
    """Yield the key of a stream that begins, and whether it is new: then it goes if that fails."""
    if path.exists():
        yield read_key(path), False
        return
    key = Stream.new_key()
    _write_key(path, key)
    try:
        yield key, True
    except BaseException as error:
        if (folder / SETTINGS).exists():
            error.add_note(Kept(f"But {folder} has a stream now, with its key in {path}."))
        else:
            path.unlink(missing_ok=True)
        raise


def _write_key(path: Path, key: bytes) -> None:
    """Write a key to a new file that only its owner can read; it is on the disk then."""
    made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(made, "wb") as file:
        file.write(f"{key.hex()}\n".encode())
        file.flush()
        os.fsync(file.fileno())


def read_key(path: Path) -> bytes:
    """Return the key in a file, and warn if others can read it.

    Args:
        path: of the file.

    Raises:
        InvalidInput: there is none, or no key in it.
    """
    if not path.is_file():
        raise InvalidInput(f"Expected {path} to be the file of the stream's key.")
    with path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        found = _KEY.fullmatch(file.read(_LONGEST_KEY_FILE))
    if found is None:
        raise InvalidInput(f"Expected {path} to hold a key: 64 hexadecimal digits, and no more.")
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        warn(
            f"{path} can be opened by others than its owner, and with the stream's folder it tells "
            "exact sums; chmod 600 closes it.",
            PrivacyLeakWarning,
        )
    return bytes.fromhex(found[1].decode())


def append_step(
    folder: Path,
    source: Path | None,
    values_file: Path | None,
    *,
    key_file: Path,
    step: str,
    no_rows: bool,
    ledger: str | None,
    as_json: bool,
    **names: str | None,
) -> None:
    """Add the rows of a step to a stream, unless it has that step.

    Args:
        folder: of the stream.
        source: a table, or the file of keys.
        values_file: that of values, if there is no table.
        key_file: with the stream's key.
        step: its public name.
        no_rows: whether it has none.
        ledger: where the stream is counted, if that has moved.
        as_json: whether to print JSON.
        **names: of keys, values and groups, as `to_build` takes them.
    """
    _check_rows(source, names, no_rows=no_rows)
    if ledger is not None and not Stream.published(folder).settings.counted:
        raise InvalidInput("Expected no --ledger: this stream was counted nowhere.")
    moved = None if ledger is None else Ledger(ledger)
    resume = functools.partial(Stream.resume, folder, key=read_key(key_file), ledger=moved)
    stream = resume()
    added = step not in stream.names
    if not added:
        memory = stream.memory(step=step)
    else:
        rows = _nothing(stream) if source is None else _rows(stream, source, values_file, names)
        memory = _appended(stream, rows, step, resume)
    with already_written(folder):
        if as_json:
            facts = {"folder": str(folder), "name": step, "added": added}
            print_json({**facts, **memory.card.to_dict()})
        else:
            _print_step(stream, folder, step, memory, added=added)


def _check_rows(source: Path | None, names: dict[str, str | None], *, no_rows: bool) -> None:
    """Raise `InvalidInput` unless there are rows, or it is said that there are none."""
    if source is None and not no_rows:
        raise InvalidInput("Expected the rows of the step, in files, or --no-rows.")
    if no_rows and (source is not None or any(each is not None for each in names.values())):
        raise InvalidInput("Expected rows, in files, or --no-rows, not both.")


def _rows(
    stream: Stream, source: Path, values_file: Path | None, names: dict[str, Any]
) -> dict[str, Any]:
    """Return rows in files, as `Stream.append` takes them."""
    grouped = names["groups"] is not None
    if grouped and stream.settings.unit is Unit.ROW:
        raise InvalidInput(
            "Expected rows without --groups: this stream was made without --by-record, and protects"
            " single rows."
        )
    if not grouped and stream.settings.unit is Unit.RECORD:
        raise InvalidInput("Expected --groups, the record of each row: this stream protects those.")
    given = to_build(source, values_file, **names).arguments({})
    return {name: given.get(name) for name in ("keys", "values", "groups")}


def _nothing(stream: Stream) -> dict[str, Any]:
    """Return no rows, of the widths of a stream."""
    [layout] = stream.settings.layouts
    by_record = stream.settings.unit is Unit.RECORD
    return {
        "keys": np.empty((*layout.heads, 0, layout.kernel.dim)),
        "values": np.empty((*layout.heads, 0, layout.value_width)),
        "groups": np.empty(0, dtype=np.int64) if by_record else None,
    }


def _appended(stream: Stream, rows: dict[str, Any], step: str, again: Callable[[], Stream]) -> Any:  # noqa: ANN401
    """Return what answers after a step that is added; whoever is stopped is told if it was.

    Args:
        stream: that goes on.
        rows: of the step.
        step: its name.
        again: opens the stream once more, and so publishes what was added and not yet published.
    """
    try:
        return stream.append(**rows, step=step, progress=has_terminal())
    except InvalidInput:  # nothing was drawn
        raise
    except BaseException as error:
        with suppress(DiscreetError, OSError):
            if step in again().names:
                error.add_note(Kept(f"But the step {step} was added before that."))
        raise


def _print_step(stream: Stream, folder: Path, step: str, memory: Any, *, added: bool) -> None:  # noqa: ANN401
    """Print what a step has come to, in a sentence or two."""
    noise = memory.released.stream
    which = f"{folder}: {step}, step {noise.step:,} of about {stream.horizon:,},"
    if not added:
        print_page(f"{which} is there already: nothing was added.")
        return
    memory = stream.tuned(step=step)
    read = memory.released.stream
    times = f"{read.factor:.3g} times that of one single release of the same rows"
    print_page(f"{which} was added. The noise of {read.reading} is {times}.")
    if (said := verdict(memory)) is not None:
        print_page(said)


def export_state(
    folder: Path,
    output: Path,
    *,
    last: int | None,
    half_life: float | None,
    step: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Save a state of a stream: whole, or not at all.

    Args:
        folder: of the stream.
        output: where to write.
        last: of the last so many steps.
        half_life: or of all, with weights that halve.
        step: as it was after this step; None for the last.
        force: whether a file that is there may be replaced.
        as_json: whether to print the card, as JSON.
    """
    reading = _reading(last, half_life)
    check_output(output, force=force, inputs=(folder,))
    published = Stream.published(folder)
    if step is not None and step not in published.numbers:
        _validate.reject_argument("step", step, f"the name of a step of {folder}")
    memory = published.answers(reading, step)
    data = to_bytes(memory)
    with output_file(output, force=force) as file:
        file.write(data)
    with already_written(output):
        if as_json:
            print_json({"output": str(output), **memory.card.to_dict()})
            return
        name = published.lines[published.number(step) - 1].name
        print_page(f"{output}: {reading}, after {name}. {memory.guarantee}")


def _reading(last: int | None, half_life: float | None) -> Reading:
    if last is not None and half_life is not None:
        raise InvalidInput("Expected --last or --half-life, not both.")
    if last is not None:
        return Reading(ReadingKind.WINDOW, last)
    return Reading() if half_life is None else Reading(ReadingKind.DECAY, half_life)
