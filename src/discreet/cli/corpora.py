"""What `corpus build`, `ask`, `map`, `card` and `page` do."""

import csv
import functools
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet._validate import reject_argument
from discreet.cli.files import Delivery, check_output, output_file
from discreet.cli.outputs import Output, tell_rows
from discreet.cli.parsing import parse_classes, parse_stated
from discreet.cli.releases import opened, print_card
from discreet.cli.shell import (
    already_written,
    has_terminal,
    print_json,
    print_page,
)
from discreet.errors import InvalidInput
from discreet.ledger import Ledger
from discreet.privacy import titled
from discreet.tables.columns import sentences
from discreet.tables.whole import read_columns
from discreet.text import Answer, Corpus, Fact, PublicTexts, PublicWords
from discreet.text.file import to_bytes

# Room that is claimed before noise is drawn. Few corpora are larger; what is, is kept anyway.
_ROOM = 2**24

# Lines of the card that are printed when a corpus was built.
_SUMMARY = ("parts", "topics", "counts are within", "words", "names", "encoder")


def build_corpus(
    source: Path,
    output: Path,
    *,
    topics: Path | None,
    find_topics: bool,
    public_texts: Path | None,
    topic_count: int | None,
    column: str,
    labels: str | None,
    classes: str | None,
    people: str | None,
    person_texts: float,
    facts: bool,
    ledger: str | None,
    stated: Sequence[str] | None,
    force: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401 (those of `Corpus.build`)
) -> None:
    """Build a corpus from a file of texts, and write it: whole, or not at all.

    Args:
        source: the texts: a table, a directory of them, or a file of lines.
        output: where to write.
        topics: a file of topics.
        find_topics: whether they are found among public words.
        public_texts: a file of public texts that topics are made of.
        topic_count: how many.
        column: of the texts.
        labels: the column of labels.
        classes: all labels that there may be, as they were typed.
        people: the column that says whose each text is.
        person_texts: the texts of a person count for so many.
        facts: whether names are found.
        ledger: the file, or the database, of the ledger that counts it.
        stated: by the builder, as it was typed.
        force: whether a file that is there may be replaced.
        as_json: whether to print the whole card, as JSON.
        **options: of `Corpus.build`.
    """
    check_output(output, force=force, inputs=(source, topics, public_texts))
    if (labels is None) != (classes is None):
        raise InvalidInput(
            "Expected both --labels and --classes: a column, and all labels that it may have, said "
            "without looking at it."
        )
    if people is None and person_texts != 1:
        reject_argument("person_texts", person_texts, "1", needs="people")
    lines = source.suffix.lower() == ".txt"
    if lines and (labels is not None or people is not None):
        raise InvalidInput(f"Expected a table in place of {source}: its lines have no columns.")
    given = _topics(topics, public_texts, topic_count, column, finding=find_topics)
    if given is None and not facts:
        raise InvalidInput(
            "Expected --topics, --public-texts or --find-topics; or --facts: nothing else "
            "can be released of texts."
        )
    counting = None if ledger is None else Ledger(ledger)
    said = parse_stated(stated)
    with Delivery(output, force=force) as delivery:
        delivery.claim(_ROOM)
        made = Corpus.build(
            read_lines(source) if lines else source,
            labels,
            column=column,
            topics=given,
            classes=None if classes is None else _classes(classes, source),
            facts=facts,
            people=people,
            person_texts=person_texts,
            ledger=counting,
            stated=said,
            progress=has_terminal(),
            **options,
        )
        delivery.write_release(made, lambda: to_bytes(made), counting)
    with already_written(output):
        if as_json:
            print_json({"output": str(output), **made.card.to_dict()})
            return
        print_page(f"{output}: {made.guarantee}")
        print_page(titled([line for line in made.card.sentences if line[0] in _SUMMARY]))


def _topics(
    names: Path | None, texts: Path | None, count: int | None, column: str, *, finding: bool
) -> Path | PublicTexts | PublicWords | None:
    """Return where topics come from: one of three, or nowhere."""
    if (names is not None) + finding + (texts is not None) > 1:
        raise InvalidInput(
            "Expected one of --topics, --public-texts and --find-topics, not several."
        )
    if count is not None and texts is None:
        reject_argument("topic_count", count, "left out", needs="public_texts")
    if names is not None and not names.is_file():
        raise InvalidInput(f"Expected {names} to be a file of topics, one a line.")
    if texts is None:
        return PublicWords() if finding else names
    found = read_lines(texts) if texts.suffix.lower() == ".txt" else _column(texts, column)
    return PublicTexts(found) if count is None else PublicTexts(found, count)


def _column(path: Path, name: str) -> list[str]:
    """Return the public texts in a column of a table, but for missing ones."""
    return [each for each in read_columns(path, [name])[name] if each]


def _classes(typed: str, source: Path) -> list[str] | list[float]:
    """Return the labels that there may be: those of a .csv file are texts, whatever they say."""
    path = Path(typed)
    names = read_lines(path) if path.is_file() else parse_classes(typed, numbers=False)
    tables = source.iterdir() if source.is_dir() else [source]
    if all(each.suffix.lower() != ".parquet" for each in tables):
        return [str(name) for name in names]
    try:
        return parse_classes(",".join(map(str, names)), numbers=True)
    except InvalidInput:
        return [str(name) for name in names]


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file of texts, one a line, that are not blank.

    Args:
        path: of the file; - for standard input.
    """
    if str(path) == "-":
        with sentences("standard input", "texts in UTF-8"):
            text = sys.stdin.read()
    else:
        if not path.is_file():
            raise InvalidInput(f"Expected {path} to be a file, one text a line.")
        with sentences(path, "a file of texts in UTF-8, one a line"):
            text = path.read_text(encoding="utf-8-sig")
    return [line.strip() for line in text.split("\n") if line.strip()]


def ask_corpus(
    file: Path,
    question: str | None,
    *,
    questions: Path | None,
    blank: str | None,
    topics: int,
    encoder: str | None,
    output: Path | None,
    file_format: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Print what a corpus answers, or write it.

    Args:
        file: of the corpus.
        question: in words; or
        questions: a file with one a line.
        blank: a sentence with a gap where the answer stands.
        topics: how many of the nearest are listed.
        encoder: where the encoder is.
        output: where to write, if anywhere.
        file_format: of what is written, if the ending does not say it.
        force: whether a file that is there may be replaced.
        as_json: whether to print JSON.
    """
    if (question is None) == (questions is None):
        raise InvalidInput("Expected a question, or --questions with a file of them.")
    wanted: dict[str, Any] = {"force": force, "as_json": as_json}
    wanted["inputs"] = (file, questions)
    out = Output.if_wanted(output, file_format, **wanted)
    corpus = opened(file, Corpus)
    if encoder is not None:
        corpus = corpus.with_encoder(encoder)
    asked = [question] if question is not None else read_lines(questions or Path("-"))
    answers = (corpus.ask(each, blank=blank, topics=topics) for each in asked)
    if out is not None:
        as_row = Answer.to_dict if out.has_lists else functools.partial(_flat, corpus)
        out.write({name: [cell] for name, cell in as_row(each).items()} for each in answers)
        out.tell(lambda: tell_rows(out.path, len(asked), "answers", as_json=as_json))
        return
    if as_json:
        found = [each.to_dict() for each in answers]
        print_json(found if question is None else found[0])
        return
    for answer in answers:
        if question is None:
            print_page(answer.question, style="bold")
        print_page(str(answer))


def _flat(corpus: Corpus, answer: Answer) -> dict[str, object]:
    """Return an answer as a row of cells: of its topics the nearest, and labels in their order."""
    asked = {"question": answer.question, "covered": answer.covered, "near": answer.near}
    names = [each.word for each in answer.facts or ()]
    found = {} if answer.facts is None else {"names": "; ".join(names)}
    return {**asked, **_flat_topic(corpus, answer), **found}


def _flat_topic(corpus: Corpus, answer: Answer) -> dict[str, object]:
    """Return what is known near the first topic of an answer, as a row of cells."""
    [topic] = answer.topics[:1] or [(None, None, None)]
    row: dict[str, object] = dict(zip(("topic", "count", "margin"), topic, strict=True))
    for label in corpus.classes:
        share = answer.shares.get(label, (None, None))
        row[f"share_{label}"], row[f"margin_{label}"] = share
    return {**row, "words": " ".join(answer.words or ())}


def show_map(
    file: Path,
    *,
    output: Path | None,
    file_format: str | None,
    force: bool,
    as_json: bool,
    as_csv: bool,
) -> None:
    """Print, or write, all topics of a corpus; of one without topics, the names that were found.

    Args:
        file: of the corpus.
        output: where to write, if anywhere.
        file_format: of what is written, if the ending does not say it.
        force: whether a file that is there may be replaced.
        as_json: whether to print JSON.
        as_csv: whether to print a table.
    """
    if as_json and as_csv:
        raise InvalidInput("Expected --json or --csv, not both.")
    if as_csv and output is not None:
        raise InvalidInput("Expected --csv without --output, or --format csv, which goes with it.")
    wanted: dict[str, Any] = {"force": force, "as_json": as_json, "inputs": (file,)}
    out = Output.if_wanted(output, file_format, **wanted)
    corpus = opened(file, Corpus)
    if out is not None:
        rows = _map_rows(corpus, lists=out.has_lists)
        out.write([{name: [row[name] for row in rows] for name in rows[0]}] if rows else [])
        what = "names" if corpus.topics is None else "topics"
        out.tell(lambda: tell_rows(out.path, len(rows), what, as_json=as_json))
        return
    if corpus.topics is None:
        _show_names(corpus.facts, as_json=as_json, as_csv=as_csv)
    elif as_json:
        print_json([_of_topic(each) for each in corpus.map()])
    elif as_csv:
        _print_table(_map_rows(corpus, lists=False))
    else:
        print_page(titled(list(map(_line, corpus.map()))))


def _show_names(names: Sequence[Fact], *, as_json: bool, as_csv: bool) -> None:
    if as_json:
        print_json([_of_name(each) for each in names])
    elif as_csv:
        rows = [[each.word, f"{each.count:.0f}", f"{each.margin:.6g}"] for each in names]
        csv.writer(sys.stdout, lineterminator="\n").writerows([["name", "count", "margin"], *rows])
    else:
        told = [(each.said, each.word) for each in names]
        print_page(titled(told) if told else "No name was found.")


def _of_name(name: Fact) -> dict[str, object]:
    return {"word": name.word, "count": name.count, "margin": name.margin}


def _of_topic(answer: Answer) -> dict[str, object]:
    facts = answer.to_dict()
    [topic] = answer.topics
    counted = {**topic._asdict(), "clear": topic.clear}
    return {**counted, "shares": facts["shares"], "words": facts["words"]}


def _map_rows(corpus: Corpus, *, lists: bool) -> list[dict[str, object]]:
    """Return all topics, or names, as rows; where cells hold lists, as JSON has them."""
    if corpus.topics is None:
        return [
            {"name": each.word, "count": each.count, "margin": each.margin} for each in corpus.facts
        ]
    if not lists:
        return [_flat_topic(corpus, each) for each in corpus.map()]
    topics = map(_of_topic, corpus.map())
    return [{"topic": each.pop("name"), **each} for each in topics]


def _print_table(rows: Sequence[Mapping[str, object]]) -> None:
    """Print a .csv table with six digits of each number that is not whole."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(rows[0])
    for row in rows:
        cells = row.values()
        writer.writerow([f"{cell:.6g}" if isinstance(cell, float) else cell for cell in cells])


def _line(answer: Answer) -> tuple[str, str]:
    """Return how many texts a topic has, and what is known of them."""
    [topic] = answer.topics
    count = f"{topic.count:,} ± {topic.margin:,.0f}"
    if not topic.clear:
        count = f"at most {max(topic.count, 0) + topic.margin:,.0f}"
    clear = [f"{label} {share}" for label, share in answer.shares.items() if share.clear]
    parts = [", ".join(clear)] if clear else []
    parts += [f"words: {', '.join(answer.words)}"] if answer.words else []
    return count, f"{topic.name}{': ' if parts else ''}{'; '.join(parts)}"


def show_card(file: Path, *, as_json: bool) -> None:
    """Print the card of a corpus.

    Args:
        file: of the corpus.
        as_json: whether to print JSON.
    """
    print_card(opened(file, Corpus), as_json=as_json)


def write_page(file: Path, output: Path, *, title: str | None, force: bool, as_json: bool) -> None:
    """Write a corpus as a page.

    Args:
        file: of the corpus.
        output: where to write.
        title: of the page.
        force: whether a file that is there may be replaced.
        as_json: whether to print the card as JSON besides.
    """
    from discreet.pages.corpus import corpus_page

    check_output(output, force=force, inputs=(file,))
    corpus = opened(file, Corpus)
    html = corpus_page(corpus, name=file.name, title=title).encode()
    with output_file(output, force=force) as written:
        written.write(html)
    with already_written(output):
        if as_json:
            print_json({"output": str(output), **corpus.card.to_dict()})
        else:
            print_page(f"{output}: {corpus.guarantee}")
