"""`discreet corpus`: private texts in, one file out that anybody may ask in words.

What can be typed is declared here; `corpora` does it.
"""

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli import options
from discreet.cli.shell import App

corpus = App(
    help="Private texts that answer questions in words, any number of times, from one release.",
    no_args_is_help=True,
)

CorpusFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="A file that discreet corpus build wrote.")
]


@corpus.command(runs="corpora.build_corpus")
def build(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            help="The texts: a .csv or .parquet table, a directory of such tables, or a .txt file "
            "with one text a line.",
        ),
    ],
    *,
    output: options.Output,
    encoder: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="minilm (better), static (much faster), or the path of a model.",
            autocompletion=lambda: ["minilm", "static"],
        ),
    ],
    epsilon: options.Epsilon,
    delta: Annotated[
        float,
        typer.Option(
            help="δ: well below one over the number of people. Topics and labels spend none of it."
        ),
    ] = 1e-6,
    column: Annotated[
        str, typer.Option(metavar="NAME", help="The column of a table with the texts.")
    ] = "text",
    topics: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Public topics: one name a line, a .csv file with a column topic, or a list in a "
            ".json file.",
        ),
    ] = None,
    find_topics: Annotated[
        bool,
        typer.Option(
            "--find-topics",
            help="Or find topics privately among frequent English words; from 8,000 texts on.",
        ),
    ] = False,
    public_texts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Or make topics of public texts of the same kind: a file like SOURCE, never the "
            "private one.",
        ),
    ] = None,
    topic_count: Annotated[
        int | None,
        typer.Option(metavar="N", help="So many topics of --public-texts; left out: 150."),
    ] = None,
    labels: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column with the label of each text.")
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="All labels that there may be, public: a,b,c, or a file with one a line.",
        ),
    ] = None,
    words: Annotated[
        bool, typer.Option("--words", help="Release sums that typical words are read from.")
    ] = False,
    facts: Annotated[
        bool,
        typer.Option(
            "--facts", help="Find names that many texts have, and what questions they answer."
        ),
    ] = False,
    people: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The column that says whose each text is: then a person is protected with all "
            "texts.",
        ),
    ] = None,
    person_texts: Annotated[
        float, typer.Option(help="With --people: all texts of a person count for so many.")
    ] = 1.0,
    rows_hint: Annotated[
        int,
        typer.Option(
            help="A public, rounded number of texts; never a count. Too many topics for so many "
            "texts are merged."
        ),
    ] = 8_000,
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Keep vectors of texts here, for the next time. As private as the texts.",
        ),
    ] = None,
    ledger: options.LedgerFile = None,
    dataset: options.Dataset = None,
    analyst: options.Analyst = None,
    stated: options.Stated = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Release a corpus of private texts, and write one file that can be given away.

    Topics, classes and words have to be public: made without looking at the private texts. The file
    has those, and noisy counts; it has no text.

    Example: discreet corpus build tickets.csv --topics topics.txt --labels team --classes
    card,money --encoder static --epsilon 1 --rows-hint 10000 -o tickets.safetensors
    """


@corpus.command(runs="corpora.ask_corpus")
def ask(
    file: CorpusFile,
    question: Annotated[
        str | None, typer.Argument(metavar="[QUESTION]", help="In words, in quotes.")
    ] = None,
    *,
    questions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Or a file with one question a line; - for standard input."
        ),
    ] = None,
    blank: Annotated[
        str | None,
        typer.Option(
            metavar="SENTENCE",
            help="Of a corpus with facts: a sentence with ___ in the answer's place.",
        ),
    ] = None,
    topics: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many of the nearest topics to list.")
    ] = 3,
    encoder: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Where the encoder is, if it was not minilm or static."),
    ] = None,
    output: options.SomeRows = None,
    file_format: options.SomeRowFormat = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Ask a corpus in words. Costs no privacy, however often.

    Each answer says which topics are nearest and how many texts they have, the shares of labels
    there, typical words and names, as far as the corpus has them, and what is not clear of the
    noise. As JSON, one question gives an object, and --questions a list of them. With --output each
    answer is a row, as soon as it is there: a line of JSON has all of it, one of a .csv table the
    nearest topic, the share of each label with its ±, and words.

    Example: discreet corpus ask tickets.safetensors "my card has not arrived"
    """


@corpus.command("map", runs="corpora.show_map")
def map_(
    file: CorpusFile,
    *,
    output: options.SomeRows = None,
    file_format: options.SomeRowFormat = None,
    force: options.Force = False,
    as_json: options.Json = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print a .csv table, of six digits.")
    ] = False,
) -> None:
    """Print all topics with counts, shares of labels and typical words, the largest first.

    With --output they are rows of a table, with all digits.

    Example: discreet corpus map tickets.safetensors
    """


@corpus.command(runs="corpora.show_card")
def card(file: CorpusFile, *, as_json: options.Json = False) -> None:
    """Print what a corpus promises, and what each part of it costs.

    discreet card --html writes the same as a page that explains it.

    Example: discreet corpus card tickets.safetensors
    """


@corpus.command(runs="corpora.write_page")
def page(
    file: CorpusFile,
    *,
    output: options.Output,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Of the page; left out: the file's name.")
    ] = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Write all that a corpus says as one page, that loads nothing and works without a network.

    It has the promise in plain words; topics as bars, with labels and words; released names; and a
    search among them. Free questions need the encoder: discreet corpus ask.

    Example: discreet corpus page tickets.safetensors -o tickets.html
    """
