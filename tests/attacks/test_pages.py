"""Texts that somebody else chose, on pages and terminals: they stay texts.

Names of topics, classes, columns, words and files come from builders, rows and strangers' files. On
a page none of them may open a tag, end an attribute, run, load something, or turn the direction of
what follows; on a terminal none may move the cursor.
"""

import copy
import random
import re
import warnings

import numpy as np
import pytest
from every_release import KINDS, SPEND, WORDS, encode, load_bytes, released
from markup import Reader
from resealing import contents, resealed
from typer.testing import CliRunner

import discreet
from discreet.cli import app
from discreet.errors import CorruptRelease
from discreet.pages import as_html
from discreet.pages.corpus import corpus_page
from discreet.pages.sheet import escaped
from discreet.text import Vocabulary

each_kind = pytest.mark.parametrize("kind", KINDS)

EVIL = (
    "<script>alert(1)</script>",
    '" onmouseover="alert(2)" x="',
    "' onfocus='alert(3)' autofocus x='",
    "</style><style>@import 'http://evil.example/a.css'</style>",
    "</title></head><svg/onload=alert(5)>",
    '<img src="http://evil.example/x.png" onerror=alert(6)>',
    '<a href="javascript:alert(7)">x</a>',
    "--><!-- ",
    "]]>",
    "&lt;script&gt;alert(8)&lt;/script&gt;",
    "$title ${body} $$ {{7*7}} %(x)s {0.__class__}",
    "\N{RIGHT-TO-LEFT OVERRIDE}desrever\N{RIGHT-TO-LEFT ISOLATE}",
    "\x1b]0;title\x07\x1b[31m\x00\x08",
    "\N{LINE SEPARATOR}two\nlines",
)
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
LOADS = (
    "src",
    "srcset",
    "href",
    "action",
    "formaction",
    "data",
    "poster",
    "background",
    "xlink:href",
)
ACTIVE = ("iframe", "object", "embed", "base", "form", "svg", "audio", "video", "frame", "math")


def pages_of(release, name="a file", title=None):
    """Every page that there is of a release."""
    made = [as_html(released(release), name=name, pictures=False)]
    if isinstance(release, discreet.Corpus):
        made.append(corpus_page(release, name=name, title=title))
    return made


def assert_harmless(page, plain):
    """A page has the tags of the same page with plain texts, and loads nothing from elsewhere."""
    reader, usual = Reader(page), Reader(plain)
    assert CONTROLS.search(page) is None
    assert {tag for tag, _ in reader.tags} <= {tag for tag, _ in usual.tags}
    assert len(reader.all("script")) == len(usual.all("script")) == page.count("<script")
    assert len(reader.all("style")) == len(usual.all("style")) == page.count("</style")
    assert "".join(reader.styles) == "".join(usual.styles)
    known = {name for _, given in usual.tags for name in given}
    for tag, given in reader.tags:
        assert tag not in ACTIVE
        assert given.keys() <= known
        assert not [name for name in given if name.startswith("on")]
        for name in LOADS:
            assert given.get(name, "data:").startswith(("data:", "#")), (tag, given)


@each_kind
def test_pages_load_nothing_from_elsewhere(kind, shelf):
    for page in pages_of(shelf.release(kind)):
        assert_harmless(page, page)
        assert "@import" not in page
        assert not re.search(r"url\((?!['\"]?data:)", page)
        assert not re.search(r"<(meta|link)[^>]*(refresh|stylesheet|preload)", page)


@each_kind
def test_the_name_of_a_file_is_a_text(kind, shelf):
    release = shelf.release(kind)
    usual = pages_of(release)
    for evil in EVIL[len(kind) % 3 :: 3]:
        for page, plain in zip(pages_of(release, evil, evil), usual, strict=True):
            assert_harmless(page, plain)


def texts(value, path=()):
    """The path to every text in nested lists and dictionaries."""
    for key in value if isinstance(value, dict) else range(len(value)):
        if isinstance(value[key], str):
            yield (*path, key)
        elif isinstance(value[key], dict | list):
            yield from texts(value[key], (*path, key))


def instead(settings, path, text):
    changed = copy.deepcopy(settings)
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = text
    return changed


def assert_texts(kind, shelf, folder, most):
    """Files with other texts in their settings, as strangers send them: on pages, and printed."""
    data, usual = shelf.file(kind), pages_of(shelf.release(kind))
    settings, _ = contents(data)
    changes = [(path, evil) for path in sorted(texts(settings), key=str) for evil in EVIL]
    random.Random(kind).shuffle(changes)
    for path, evil in changes[:most]:
        new = instead(settings, path, evil)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                opened = load_bytes(resealed(data, lambda held, _, n=new: held.update(n)), folder)
            except CorruptRelease:
                continue
            made = pages_of(opened)
        for page, plain in zip(made, usual, strict=True):
            assert_harmless(page, plain)
        one = released(opened)
        said = f"{one!r}\n{one.card}\n{one.guarantee}"
        assert CONTROLS.search(said) is None, (path, said)


@each_kind
def test_texts_of_a_stranger_s_file_are_texts(kind, shelf, tmp_path):
    assert_texts(kind, shelf, tmp_path, 25)


@pytest.mark.slow
@each_kind
def test_more_texts_of_a_stranger_s_file_are_texts(kind, shelf, tmp_path):
    assert_texts(kind, shelf, tmp_path, 300)


def built(names):
    """Releases whose names were chosen by somebody like that, in all places that have some."""
    rng = np.random.default_rng(1)
    printable = [each for each in names if each.isprintable()]  # other topics are refused
    keys = rng.uniform(-0.5, 0.5, (60, 3))
    labels = np.array(names, dtype=object)[np.arange(60) % len(names)]
    classes = {"classes": names, "rows_hint": 100, **SPEND}
    yield discreet.softmax_regression(keys, labels, **classes)
    yield discreet.discover(list(names) * 500, epsilon=8.0, delta=1e-3)
    stated = dict(zip(("data", "builder", "purpose", "contact"), printable, strict=False))
    yield discreet.build(keys, keys, scale=1.0, kernel="minimax", stated=stated, **SPEND)
    stated = dict(zip(("contact", "purpose", "data"), printable[4:], strict=False))
    yield discreet.build(keys, keys, scale=1.0, kernel="minimax", stated=stated, **SPEND)
    said = [f"{name} {word}" for word in WORDS for name in printable]
    corpus = {
        "encoder": encode,
        "topics": printable,
        "facts": True,
        "words": Vocabulary(words=WORDS),
    }
    yield discreet.Corpus.build(said[:60], list(labels), **corpus, **classes)
    pandas = pytest.importorskip("pandas")
    from discreet.sklearn import PrivateClassifier

    schema = dict.fromkeys(names, (-1, 1)) | {"job": list(names)}
    frame = pandas.DataFrame(dict.fromkeys(names, keys[:, 0]) | {"job": labels})
    model = PrivateClassifier(4.0, 1e-5, columns=schema, classes=list(names), rows_hint=100)
    yield model.fit(frame, labels)


def test_names_of_classes_topics_columns_and_words_are_texts(tmp_path):
    """And no pipeline is stopped by them: who has odd names gets a page all the same."""
    usual = built([f"name {number}" for number in range(len(EVIL))])
    for release, other in zip(built(EVIL), usual, strict=True):
        path = tmp_path / "release.safetensors"
        release.save(path)
        again = discreet.load(path)
        for page, plain in zip(pages_of(again), pages_of(other), strict=True):
            assert_harmless(page, plain)
            Reader(page)
        shown = CliRunner().invoke(app, ["card", str(path)])
        assert shown.exit_code == 0, shown.output
        assert CONTROLS.search(shown.output) is None


def test_the_commands_that_make_pages_make_these(shelf, tmp_path, monkeypatch):
    """A file of an odd name, from the command line: the page stands beside it under that name."""
    monkeypatch.chdir(tmp_path)
    odd = "<img src=x onerror=alert(1)>.safetensors"
    for kind, command in (("memory", ["card", "--html"]), ("corpus", ["corpus", "page"])):
        (tmp_path / odd).write_bytes(shelf.file(kind))
        done = CliRunner().invoke(app, [*command, odd, "-o", f"{kind}.html", "--force"])
        assert done.exit_code == 0, done.output
        page = (tmp_path / f"{kind}.html").read_text("utf-8")
        assert "<img src=x" not in page
        assert not [tag for tag, given in Reader(page).tags if "onerror" in given]


def test_blanks_stay_and_what_cannot_be_seen_does_not():
    """Blanks that keep words together are no attack; marks that turn a text around are."""
    assert escaped("ε\N{NO-BREAK SPACE}=\N{NARROW NO-BREAK SPACE}1 <b>") == (
        "ε\N{NO-BREAK SPACE}=\N{NARROW NO-BREAK SPACE}1 &lt;b&gt;"
    )
    for hidden in ("\N{RIGHT-TO-LEFT OVERRIDE}", "\N{ZERO WIDTH SPACE}", "\n", "\x1b", "\0"):
        assert escaped(f"a{hidden}b") == "a\N{REPLACEMENT CHARACTER}b"
