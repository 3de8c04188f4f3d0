"""`discreet corpus`: texts in, one file out, questions, a map, a card and a page."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from markup import Reader
from pyarrow import parquet
from typer.testing import CliRunner

import discreet
from discreet.cli import app
from discreet.ledger import Ledger

RUNNER = CliRunner()
TOPICS = ["card arrival", "exchange rate", "lost luggage", "weather"]
TEXTS = {
    "card": ["my card has not arrived", "when does the card arrive", "the card arrival is late"],
    "money": ["wrong exchange rate", "what exchange rate did you use", "the rate of exchange"],
}
BUILD = ("corpus", "build", "tickets.csv", "--encoder", "static", "-o", "tickets.safetensors")
SPEND = ("--epsilon", "1", "--rows-hint", "600")
NAMED = ("--topics", "topics.txt")
LABELLED = ("--labels", "team", "--classes", "card,money")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [(text, team, f"p{place}") for team in TEXTS for place, text in enumerate(TEXTS[team])]
    rows *= 100
    with Path("tickets.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "team", "who"), *rows])
    texts, teams, people = (list(column) for column in zip(*rows, strict=True))
    table = {"body": texts, "stars": np.arange(len(rows)) % 2, "team": teams, "who": people}
    parquet.write_table(pa.table(table), "tickets.parquet")
    Path("tickets.txt").write_text("\r\n".join(["", *texts, ""]), encoding="utf-8")
    Path("topics.txt").write_text("\n".join(TOPICS), encoding="utf-8")
    return tmp_path


def run(*arguments, **more):
    return RUNNER.invoke(app, [str(each) for each in arguments], **more)


def done(*arguments, **more):
    result = run(*arguments, **more)
    assert result.exit_code == 0, result.output
    return result.stdout


def said(*arguments):
    """The one sentence that a command ends with, and nothing else."""
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    return line.removeprefix("discreet: ")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A corpus of two topics that many texts are near, and two that none is."""
    texts = [text for each in TEXTS.values() for text in each] * 100
    labels = [team for team, some in TEXTS.items() for _ in some] * 100
    path = tmp_path_factory.mktemp("corpus") / "tickets.safetensors"
    made = discreet.Corpus.build(
        texts,
        labels,
        encoder="static",
        topics=TOPICS,
        classes=list(TEXTS),
        words=True,
        epsilon=4.0,
        rows_hint=600,
    )
    made.save(path)
    return path


def test_a_table_becomes_a_file_that_answers():
    shown = done(*BUILD, *SPEND, *NAMED, *LABELLED, "--words")
    made = discreet.load("tickets.safetensors")
    assert f"tickets.safetensors: {made.guarantee}" in shown
    lines = dict(made.card.sentences)
    for title in ("parts", "topics", "counts are within", "words", "encoder"):
        assert lines[title] in shown
    assert made.classes == ("card", "money")
    answer = made.ask("my card has not arrived")
    assert answer.topics[0].name == "card arrival"
    assert abs(answer.topics[0].count - 300) < 60


@pytest.mark.parametrize(
    ("source", "more", "classes"),
    [
        ("tickets.txt", (), ()),
        ("tickets.parquet", ("--column", "body", *LABELLED), ("card", "money")),
        ("tickets.parquet", ("--column", "body", "--labels", "stars", "--classes", "0,1"), (0, 1)),
        ("tickets.csv", ("--labels", "team", "--classes", "classes.txt"), ("card", "money")),
        ("folder", LABELLED, ("card", "money")),
    ],
)
def test_texts_come_in_lines_tables_and_folders(source, more, classes):
    Path("classes.txt").write_text("card\nmoney\n", encoding="utf-8")
    Path("folder").mkdir()
    lines = Path("tickets.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    for name, part in (("a.csv", lines[1:301]), ("b.csv", lines[301:])):
        Path("folder", name).write_text(lines[0] + "".join(part), encoding="utf-8")
    done(*BUILD[:2], source, *BUILD[3:], *NAMED, "--epsilon", "8", *more)
    made = discreet.load("tickets.safetensors")
    assert made.classes == classes
    counts = {answer.topics[0].name: answer.topics[0].count for answer in made.map()}
    assert abs(counts["card arrival"] - 300) < 10
    assert abs(counts["exchange rate"] - 300) < 10


def test_people_are_protected_and_the_ledger_counts_it():
    done("ledger", "create", "b.db", "desk", "--epsilon", 2, "--delta", 1e-5, "--unit", "record")
    counted = ("--ledger", "b.db", "--dataset", "desk", "--analyst", "eve")
    card = json.loads(
        done(*BUILD, *SPEND, *NAMED, "--people", "who", "--person-texts", 3, *counted, "--json")
    )
    assert card["output"] == "tickets.safetensors"
    assert card["unit"] == "record"
    assert card["group_rows"] == 3
    [spend] = Ledger("b.db").statement("desk").spends
    assert spend.epsilon == pytest.approx(1, abs=1e-4)
    assert spend.analyst == "eve"
    assert [Path(place).name for place in spend.places] == ["tickets.safetensors"]
    refused = said(*BUILD, *SPEND, *NAMED, "--people", "who", "--epsilon", 3, *counted, "--force")
    assert "3" in refused
    assert len(Ledger("b.db").statement("desk").spends) == 1


def test_topics_come_from_words_or_public_texts():
    done(*BUILD, *SPEND, "--public-texts", "tickets.txt", "--topic-count", 3)
    assert discreet.load("tickets.safetensors").topics.source == "public texts"
    assert len(discreet.load("tickets.safetensors").topics) == 3
    done(*BUILD, *SPEND, "--find-topics", "--force")
    assert discreet.load("tickets.safetensors").topics.source == "found privately"


def test_names_alone_need_no_topics():
    Path("notes.txt").write_text("The diagnosis is Zorbulitis.\n" * 300, encoding="utf-8")
    done("corpus", "build", "notes.txt", *BUILD[3:], *SPEND, "--facts", "--delta", 1e-5)
    asked = ("corpus", "ask", "tickets.safetensors", "What is the diagnosis?")
    [fact] = json.loads(done(*asked, "--blank", "The diagnosis is ___", "--json"))["facts"]
    assert fact["word"] == "zorbulitis"
    assert abs(fact["count"] - 300) < 2 * fact["margin"]
    names = ("corpus", "map", "tickets.safetensors")
    assert "zorbulitis" in done(*names)
    assert json.loads(done(*names, "--json")) == [fact]
    heading, *rows = done(*names, "--csv").splitlines()
    assert (heading, len(rows)) == ("name,count,margin", 1)


@pytest.mark.parametrize(
    ("more", "start"),
    [
        ((), "Expected --topics, --public-texts or --find-topics; or --facts"),
        ((*NAMED, "--find-topics"), "Expected one of --topics, --public-texts and"),
        ((*NAMED, "--labels", "team"), "Expected both --labels and --classes"),
        ((*NAMED, "--classes", "a,b"), "Expected both --labels and --classes"),
        ((*NAMED, "--labels", "team", "--classes", "a,b"), "Expected every label to be one of"),
        ((*NAMED, "--column", "none"), "Expected tickets.csv to have one column 'none'"),
        ((*NAMED, "--topic-count", "9"), "Expected --topic-count 9 to come with --public-texts."),
        ((*NAMED, "--person-texts", "2"), "Expected --person-texts 2.0 to come with --people."),
        ((*NAMED, "--encoder", "none"), "Expected --encoder 'none' to be 'minilm' or 'static'"),
        ((*NAMED, "--epsilon", "0"), "Expected --epsilon 0.0 to be"),
        ((*NAMED, "--dataset", "desk"), "Expected --dataset 'desk' to come with --ledger."),
        (("--topics", "none.txt"), "Expected none.txt to be a file of topics"),
        (("--public-texts", "none.txt"), "Expected none.txt to be a file"),
        ((*NAMED, "-o", "tickets.csv"), "Expected tickets.csv not to be one of the files"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_spent(more, start):
    before = sorted(Path().iterdir())
    assert said(*BUILD, *SPEND, *more).startswith(start)
    assert sorted(Path().iterdir()) == before


def test_lines_have_no_columns():
    lines = ("corpus", "build", "tickets.txt", *BUILD[3:], *SPEND, *NAMED)
    for more in (LABELLED, ("--people", "who")):
        assert said(*lines, *more) == (
            "Expected a table in place of tickets.txt: its lines have no columns."
        )


def test_no_message_quotes_a_text():
    Path("tickets.txt").write_bytes(b"my secret text\n\xff\xfe\n")
    line = said("corpus", "build", "tickets.txt", *BUILD[3:], *SPEND, *NAMED)
    assert "secret" not in line
    assert line.startswith("Expected tickets.txt to be a file of texts in UTF-8")


def test_one_question_gets_a_paragraph_and_many_get_one_each(file):
    corpus, question = discreet.load(file), "my card has not arrived"
    assert done("corpus", "ask", file, question) == f"{corpus.ask(question)}\n"
    asked = [question, "zebras in the savannah"]
    wanted = "".join(f"{each}\n{corpus.ask(each)}\n" for each in asked)
    lines = "\n\n".join(asked)
    assert done("corpus", "ask", file, "--questions", "-", input=lines) == wanted
    Path("asked.txt").write_text(lines, encoding="utf-8")
    assert done("corpus", "ask", file, "--questions", "asked.txt") == wanted
    told = json.loads(done("corpus", "ask", file, "--questions", "asked.txt", "--json"))
    assert [each["question"] for each in told] == asked
    assert [each["covered"] for each in told] == [True, False]


def test_an_answer_as_json_has_all_that_the_answer_has(file):
    answer = discreet.load(file).ask("exchange rates", topics=2)
    told = json.loads(done("corpus", "ask", file, "exchange rates", "--topics", 2, "--json"))
    assert told["text"] == str(answer)
    assert [each["name"] for each in told["topics"]] == [each.name for each in answer.topics]
    assert told["topics"][0]["count"] == answer.topics[0].count
    assert told["topics"][0]["near"] == pytest.approx(answer.topics[0].near)
    assert {each["label"]: each["share"] for each in told["shares"]} == pytest.approx(
        {label: share.share for label, share in answer.shares.items()}
    )
    assert told["words"] == list(answer.words)
    assert told["facts"] is None


def test_a_question_is_needed_and_one_way_to_ask(file):
    wanted = "Expected a question, or --questions with a file of them."
    assert said("corpus", "ask", file) == wanted
    assert said("corpus", "ask", file, "why?", "--questions", "-") == wanted
    assert "encoder" in said("corpus", "ask", file, "why?", "--encoder", "nowhere")


def test_the_map_has_every_topic_in_lines_json_and_csv(file):
    answers = discreet.load(file).map()
    lines = done("corpus", "map", file).splitlines()
    assert len(lines) == len(TOPICS)
    for answer, line in zip(answers, lines, strict=True):
        [topic] = answer.topics
        assert topic.name in line
        assert (f"{topic.count:,} ± {topic.margin:,.0f}" in line) is topic.clear
        assert line.startswith("at most ") is not topic.clear
    told = json.loads(done("corpus", "map", file, "--json"))
    rows = list(csv.DictReader(io.StringIO(done("corpus", "map", file, "--csv"))))
    for answer, one, row in zip(answers, told, rows, strict=True):
        [topic] = answer.topics
        assert (one["name"], one["count"]) == (row["topic"], int(row["count"])) == topic[:2]
        for share in one["shares"]:
            assert share["share"] == answer.shares[share["label"]].share
            assert float(row[f"share_{share['label']}"]) == pytest.approx(share["share"], rel=1e-4)
        assert row["words"].split() == one["words"] == list(answer.words)
    assert said("corpus", "map", file, "--json", "--csv").startswith("Expected --json or --csv")


def test_answers_and_the_map_are_rows(file):
    corpus, asked = discreet.load(file), ["my card has not arrived", "zebras in the savannah"]
    Path("asked.txt").write_text("\n".join(asked), encoding="utf-8")
    ask = ("corpus", "ask", file, "--questions", "asked.txt")
    whole = [corpus.ask(each).to_dict() for each in asked]
    shown = done(*ask, "-o", "-", "--format", "jsonl")
    assert [json.loads(line) for line in shown.splitlines()] == whole
    assert done(*ask, "-o", "out.parquet") == "out.parquet: 2 answers\n"
    assert parquet.read_table("out.parquet").to_pylist() == whole
    facts = json.loads(done(*ask, "-o", "out.csv", "--json"))
    assert facts == {"output": "out.csv", "answers": 2}
    with Path("out.csv").open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    for row, answer in zip(rows, map(corpus.ask, asked), strict=True):
        nearest = answer.topics[0]
        assert (row["question"], row["covered"]) == (answer.question, str(answer.covered))
        assert (row["topic"], int(row["count"])) == nearest[:2]
        assert float(row["margin"]) == nearest.margin
        for label, share in answer.shares.items():
            assert (float(row[f"share_{label}"]), float(row[f"margin_{label}"])) == share
        assert row["words"].split() == list(answer.words)
    map_ = ("corpus", "map", file)
    done(*map_, "-o", "map.parquet")
    told = json.loads(done(*map_, "--json"))
    assert parquet.read_table("map.parquet").to_pylist() == [
        {"topic": each.pop("name"), **each} for each in told
    ]
    exact = list(csv.DictReader(io.StringIO(done(*map_, "-o", "-"))))
    rounded = list(csv.DictReader(io.StringIO(done(*map_, "--csv"))))
    assert [list(row) for row in exact] == [list(row) for row in rounded]
    assert [float(row["margin"]) for row in rounded] == pytest.approx(
        [float(row["margin"]) for row in exact], rel=1e-5
    )
    for arguments, sentence in [
        ((*map_, "-o", "-", "--csv"), "Expected --csv without --output"),
        ((*map_, "--format", "csv"), "Expected --format with --output"),
        ((*ask, "-o", "out.npy"), "to end in .csv, .parquet or .jsonl"),
        ((*ask, "-o", "asked.txt", "--format", "csv", "--force"), "files that are read"),
    ]:
        assert sentence in said(*arguments)


def test_rows_come_as_soon_as_they_are_there(file, monkeypatch):
    def asked(corpus, question, **_):
        if question == "stop":
            raise KeyboardInterrupt
        return discreet.load(file).map()[0]

    monkeypatch.setattr(discreet.Corpus, "ask", asked)
    more = ("-o", "-", "--format", "jsonl")
    result = run("corpus", "ask", file, "--questions", "-", *more, input="go\nstop\n")
    assert result.exit_code == 130
    assert len(result.stdout.splitlines()) == 1


def test_names_are_rows():
    made = discreet.Corpus.build(
        ["I flew to Lisbon"] * 300,
        encoder="static",
        facts=True,
        epsilon=4.0,
        delta=1e-6,
        rows_hint=300,
    )
    made.save("names.safetensors")
    names = [tuple(each) for each in made.facts]
    assert names
    rows = csv.reader(io.StringIO(done("corpus", "map", "names.safetensors", "-o", "-")))
    assert next(rows) == ["name", "count", "margin"]
    assert [(name, float(count), float(margin)) for name, count, margin in rows] == names
    rows = csv.DictReader(
        io.StringIO(done("corpus", "ask", "names.safetensors", "where to?", "-o", "-"))
    )
    assert next(rows)["names"]


def test_its_card_is_that_of_any_file(file):
    card = discreet.load(file).card
    shown = done("card", file)
    assert shown == done("corpus", "card", file)
    assert shown.split()[: len(str(card).split())] == str(card).split()
    assert json.loads(done("corpus", "card", file, "--json"))["topics"] == len(TOPICS)
    done("card", file, "--html", "-o", "card.html")
    text = Reader(Path("card.html").read_text(encoding="utf-8")).text
    assert "a private corpus" in text
    assert str(discreet.load(file).guarantee) in text


def test_a_page_is_written_and_not_replaced(file):
    shown = done("corpus", "page", file, "-o", "page.html", "--title", "What tickets say")
    assert shown == f"page.html: {discreet.load(file).guarantee}\n"
    reader = Reader(Path("page.html").read_text(encoding="utf-8"))
    assert "What tickets say" in reader.text
    assert all(topic in reader.text for topic in TOPICS)
    assert "not to exist yet" in said("corpus", "page", file, "-o", "page.html")
    done("corpus", "page", file, "-o", "page.html", "--force")


def test_other_files_are_told_apart(file):
    keys = np.eye(4)
    np.save("keys.npy", keys)
    discreet.build(keys, keys, epsilon=1.0, delta=1e-6, scale=1.0, rows_hint=10_000).save("memory")
    for line in (("ask", "memory", "why?"), ("map", "memory"), ("card", "memory")):
        assert said("corpus", *line) == (
            "Expected memory to be a corpus, and it is a memory: discreet attend answers from it."
        )
    assert said("attend", file, "keys.npy", "-o", "out.npy").endswith(
        "to be a memory, and it is a corpus: discreet corpus ask answers from it."
    )


def test_a_custom_encoder_has_to_be_given_again():
    made = discreet.Corpus.build(
        ["one"] * 50,
        encoder=lambda text: np.random.default_rng(list(text.encode())).normal(size=8),
        topics=["one", "two"],
        epsilon=1.0,
        rows_hint=50,
    )
    made.save("own.safetensors")
    assert said("corpus", "ask", "own.safetensors", "why?").startswith("Expected --encoder")
    done("corpus", "map", "own.safetensors")
