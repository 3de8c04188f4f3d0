"""Machine-checked proofs: what the notes name is there, constants are the code's, Coq agrees."""

import functools
import importlib.util
import inspect
import math
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

from discreet.features import base
from discreet.features.linear import Linear
from discreet.kernels import Fourier, Minimax
from discreet.noise import correlated, lattice
from discreet.privacy import Neighbours
from discreet.readers.least_squares.layout import Moments
from discreet.sums import cells, layout, records, settings

ROOT = pathlib.Path(__file__).parents[2]
PROOFS = ROOT / "proofs"
FILES = sorted(PROOFS.rglob("*.v"))
BOUNDS = {"scale": 0.5, "key_norm": 1.0, "query_norm": 1.0}


def load():
    spec = importlib.util.spec_from_file_location("check_proofs", PROOFS / "check.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


check = load()


def script(*arguments):
    command = [sys.executable, str(PROOFS / "check.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_every_theorem_that_the_notes_name_is_there():
    named = check.named((ROOT / "docs" / "privacy.md").read_text("utf-8"))
    assert len(named) > 50
    missing = [
        (stem, name) for stem, name in named if name not in check.theorems(PROOFS / f"{stem}.v")
    ]
    assert missing == []
    # Every file with a theorem is named somewhere: proofs of nothing would be no evidence.
    assert {stem for stem, _ in named} == {path.stem for path in FILES if check.theorems(path)}


def test_names_are_read_from_marked_paragraphs_only():
    text = (
        "`other` and `proofs/No.v`.\n\n*Checked by machine.* `proofs/A.v`: `one`, with `two`\n"
        "(3). `proofs/B.v`: `three'`.\n\n`four`\n"
    )
    assert check.named(text) == [("A", "one"), ("A", "two"), ("B", "three'")]


def test_every_file_is_checked_and_described():
    # `check.py` compiles what lies in the folder itself.
    assert {path.parent for path in FILES} == {PROOFS}
    readme = (PROOFS / "README.md").read_text("utf-8")
    assert [path.name for path in FILES if f"| `{path.name}` |" not in readme] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_nothing_is_left_unproved(path):
    assert check.left_out(path) == []


@pytest.mark.parametrize(
    "cheat",
    [
        "Theorem no : False. Admitted.",
        "Theorem no : False. Proof. admit. Qed.",
        "Theorem no : False. Proof. give_up. Qed.",
        "Lemma no : False. Abort.",
        "Axiom no : False.",
        "Parameter no : False.",
        "Conjecture no : False.",
        "Unset Guard Checking.",
        "#[bypass_check(positivity)] Inductive no := No (_ : no -> False).",
    ],
)
def test_words_that_leave_something_unproved_are_found(cheat, tmp_path):
    path = tmp_path / "No.v"
    path.write_text(f"(* {cheat} (* nested *) *) Definition yes := 1. {cheat}\n")
    assert len(check.left_out(path)) == 1
    path.write_text(f"(* {cheat} (* nested *) *) Definition yes := 1.\n")
    assert check.left_out(path) == []


def test_constants_are_those_of_the_code():
    proved = check.constants(PROOFS / "Constants.v")
    clip = proved.pop("clip_bits")
    assert f"* (1 - 2.0**-{clip})\n" in inspect.getsource(lattice._shrink_long_rows)
    assert 1 - 2.0 ** -proved.pop("shrink_bits") == base.SHRINK
    expected = {
        "feature_radius": {base.FEATURE_RADIUS},
        "float_bits": {sys.float_info.mant_dig},
        "exact_float": {lattice._EXACT_FLOAT, layout._EXACT_FLOAT},
        "largest_squared_norm": {lattice._LARGEST_SQUARED_NORM},
        "largest_sum": {layout._LARGEST_SUM, cells._LARGEST_SUM},
        "finest_resolution": {settings._FINEST_RESOLUTION},
        "most_pairs": {records._MOST_PAIRS},
        "limb_bits": {records._LIMB_BITS},
        "int64_end": {int(np.iinfo(np.int64).max) + 1},
        "decay_unit": {correlated._DECAY_UNIT, 1 << correlated._DECAY_BITS},
        "weight_unit": {correlated._WEIGHT_UNIT, 1 << correlated._WEIGHT_BITS},
        "half_unit": {correlated._WEIGHT_UNIT >> 1},
        "most_steps": {correlated.MOST_STEPS},
        "largest_buffer": {int(correlated._LARGEST)},
    }
    assert {name: {value} for name, value in proved.items()} == expected


def test_every_constant_is_used_in_a_proof():
    others = [path for path in FILES if path.name != "Constants.v"]
    text = " ".join(check.without_comments(path.read_text("utf-8")) for path in others)
    assert [name for name in check.constants(PROOFS / "Constants.v") if name not in text] == []


@pytest.mark.parametrize("tau", [0.3, 2.0])
@pytest.mark.parametrize("kernel", [Minimax(2, degree=2, **BOUNDS), Fourier(2, **BOUNDS)])
def test_the_replace_bound_is_that_of_the_proof(kernel, tau):
    """`Memory.replace_squared`, from the numbers that the theorem has."""
    values = layout.ValueLayout(
        kernel=kernel, heads=(), value_dim=2, value_norm=1.0, tau=tau, resolution=12
    )
    features, inner = base.FEATURE_RADIUS**2, kernel.least_inner
    value, tau_squared = values.value_radius**2, values.tau_units**2
    least, most = tau_squared - value, tau_squared + value
    corners = [-(least * features), -(least * inner), -(most * features), -(most * inner)]
    squared = 2 * features * most + 2 * max(corners)
    assert values.row_sensitivity(Neighbours.REPLACE) == pytest.approx(math.sqrt(squared))
    assert values.row_bound == pytest.approx(math.sqrt(features * (value + tau_squared)))


@pytest.mark.parametrize("share", [0.02, 1 / 3, 0.9])
@pytest.mark.parametrize("tau", [0.3, 2.0])
def test_the_bound_with_second_moments_is_that_of_the_proof(share, tau):
    """`Moments.moments_squared`, with `top`."""
    moments = Moments(
        kernel=Linear(3, key_norm=1.0),
        heads=(),
        value_dim=2,
        value_norm=1.0,
        tau=tau,
        resolution=12,
        share=share,
        ridge=1.0,
        centred=False,
    )
    features, inner = base.FEATURE_RADIUS**2, moments.kernel.least_inner
    least, most = moments.inner_range
    weight = moments.part_weights[1] ** 2

    def top(slope, end):
        place = min(max(slope / (2 * weight), 0), max(end, 0))
        return slope * place - weight * place**2

    gain = max(0, top(-least, features), top(most, -inner))
    squared = 2 * (features * most + weight * features**2 + gain)
    assert moments.row_sensitivity(Neighbours.REPLACE) == pytest.approx(math.sqrt(squared))
    whole = math.sqrt(features * most + weight * features**2)
    assert moments.row_bound == pytest.approx(whole)


def test_the_numbers_of_a_stream_are_those_of_the_proof():
    """`Streams.coef`, `correlation`, `rho` and `participation_squared`."""
    strategy = correlated._table()[3]
    shares = [weight / correlated._WEIGHT_UNIT for weight in strategy.weights]
    decays = [decay / correlated._DECAY_UNIT for decay in strategy.decays]
    pairs = list(zip(shares, decays, strict=True))

    def coef(k):
        return sum(share * decay ** (k - 1) for share, decay in pairs) if k else 1.0

    def correlation(d):
        return coef(d) + sum(
            one * other * theirs**d / (1 - mine * theirs)
            for one, mine in pairs
            for other, theirs in pairs
        )

    assert strategy.coefficients(5) == pytest.approx([coef(k) for k in range(5)])
    distances = np.array([0, 1, 7, 365])
    assert strategy.correlation(distances) == pytest.approx([correlation(d) for d in distances])
    rho = 1 + sum(1 / (1 - decay) for decay in decays) / correlated._WEIGHT_UNIT
    assert strategy.rounding == pytest.approx(rho)
    squared = 5 * correlation(0) + sum(2 * (5 - d) * correlation(d * 30) for d in range(1, 5))
    participation = correlated.Participation(steps=5, separation=30)
    assert participation.sensitivity(strategy) == pytest.approx(math.sqrt(squared))


@functools.cache
def coq_is_there():
    return check.ready()


def needs_coq():
    if not coq_is_there():
        pytest.skip("needs Coq and mathcomp: make proofs installs them where there is apt-get")


@pytest.mark.slow
def test_all_proofs_hold(tmp_path):
    needs_coq()
    done = script("--into", tmp_path / "built")
    assert done.returncode == 0, done.stderr
    assert "axioms:" not in done.stdout
    named = set(check.named((ROOT / "docs" / "privacy.md").read_text("utf-8")))
    assert f"The {len(named)} with a star" in done.stdout
    assert done.stdout.count("\n  * ") == len(named)
    count = sum(len(check.theorems(path)) for path in FILES)
    assert f"{count} theorems and lemmas in {len(FILES)} files hold" in done.stdout


CHEAT = """Variable believed : 1 = 2.
Theorem cheat : 1 = 2.
Proof. exact believed. Qed.

"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "old", "new", "complaint"),
    [
        ("Integers", "Theorem round_half_up", "Theorem round_half_up", None),
        ("Integers", "a * B / decay_unit.", "a * B / decay_unit + 1.", 'File "./Integers.v"'),
        ("Integers", "Qed.", "Admitted.", "Integers.v leaves something unproved: Admitted"),
        ("Integers", "Theorem round", f"{CHEAT}Theorem round", "rests on Integers.believed"),
        ("Integers", "Theorem round_half_up", "Theorem other", "round_half_up in Integers.v"),
        ("Constants", "limb_bits : Z := 16.", "limb_bits : Z := 18.", 'File "./Integers.v"'),
    ],
)
def test_what_is_broken_is_seen(tmp_path, file, old, new, complaint):
    needs_coq()
    proofs, page = tmp_path / "proofs", tmp_path / "page.md"
    proofs.mkdir()
    for name in ("Constants.v", "Integers.v"):
        shutil.copy(PROOFS / name, proofs)
    path = proofs / f"{file}.v"
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1))
    page.write_text("*Checked by machine.* `proofs/Integers.v`: `round_half_up`.\n")
    done = script("--proofs", proofs, "--page", page, "--into", tmp_path / "built")
    if complaint is None:
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode == 1
        assert complaint in done.stderr
