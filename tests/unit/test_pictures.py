"""Pictures: what is drawn is what was given, and nothing of matplotlib's own state changes."""

import base64
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from discreet import pictures
from discreet.errors import InvalidInput
from discreet.pictures import Curve

EPSILONS = [0.5, 1.0, 2.0]


def scatter(count=1000, *, sigmas=1.0):
    rng = np.random.default_rng(0)
    exact = rng.normal(size=(count // 4, 4))
    stderr = np.full(exact.shape, 0.1)
    return pictures.exact_against_private(
        exact, exact + sigmas * stderr * rng.normal(size=exact.shape), stderr
    )


def errors():
    lines = {
        "spread": Curve(EPSILONS, [0.4, 0.2, 0.1]),
        "a tenth": Curve(EPSILONS, [0.2, 0.1, 0.05]),
    }
    panel = pictures.Panel(lines, Curve(EPSILONS, [0.41, 0.19, 0.1], [0.01] * 3), "n = 1,347")
    return pictures.error_against_epsilon_and_rows(panel, panel)


def accuracy():
    curve = Curve(EPSILONS, [0.5, 0.7, 0.8], [0.01, 0.01, 0.01])
    return pictures.accuracy_against_epsilon(
        {"memory": curve, "classifier": curve, "least squares": curve, "DP-SGD": curve},
        levels={"not private": 0.99, "exact attention": 0.98},
        floor=0.1,
        delta=1e-5,
    )


def votes():
    exact = np.linspace(-0.05, 0.1, 10)
    stderr = np.full(10, 0.02)
    image = np.linspace(0, 1, 64).reshape(8, 8)
    return pictures.votes(image, exact=exact, private=exact + 0.01, stderr=stderr, truth=9)


def secrets():
    names = ["exact attention", "memory, ε = 1"]
    intervals = [(0.97, 1.0), (0.1, 0.2)]
    return pictures.secrets_found(names, [1.0, 0.15], intervals, [np.nan, 0.27], chance=0.1)


def losses():
    return pictures.lost_accuracy(
        EPSILONS, {"temperature": [0.1] * 3, "kernel": [0.0, -0.01, 0.02], "noise": [0.3, 0.1, 0]}
    )


def own_errors():
    curves = {"error": Curve(EPSILONS, [0.3, 0.2, 0.1]), "noise": Curve(EPSILONS, [0.2, 0.1, 0.05])}
    return pictures.error_against_length_and_epsilon(curves, curves, epsilon=1.0)


def levels():
    return pictures.noise_by_level([1, 2, 3, 4], [3.0] * 4, reference=("the memory", 1.0))


def stream(*, told=(0.2, 0.5, 1.5), step=20):
    steps = [1, 10, 100]
    names = ("all steps", "the last 30 steps", "a binary tree", "steps alone")
    return pictures.noise_of_stream(
        {name: Curve(steps, [2.0, 2.5 + place, 3.0]) for place, name in enumerate(names)},
        Curve([1, 5, 20], told),
        step=step,
        x_label="window: the last so many steps, after step 20",
        y_label="signal over error",
        level="below 1: mostly noise",
    )


def shape(name="age", *, outputs=1, categories=0, **given):
    count = categories or 16
    values = np.linspace(-1, 1, count)[:, None] * np.arange(1, outputs + 1)
    panel = {
        "share": 0.25,
        "edges": None if categories else np.linspace(20, 80, 17)[1:-1],
        "ends": (20.0, 80.0),
        "dates": False,
        "labels": [f"category {each}" for each in range(count)],
        "values": values,
        "margins": np.full(values.shape, 0.2),
        "clear": True,
    }
    return pictures.ShapePanel(name=name, **{**panel, **given})


def shapes(*panels, outputs=()):
    given = panels or (shape(), shape("job", categories=4), shape("day", clear=False))
    return pictures.shapes_of_columns(given, outputs=outputs, adds="the log-odds of yes against no")


ALL = [scatter, errors, accuracy, votes, secrets, losses, own_errors, levels, stream, shapes]


def words(figure):
    """Return everything that is written on a figure."""
    from matplotlib.text import Text

    return "\n".join(each.get_text() for each in figure.findobj(Text))


@pytest.mark.parametrize("draw", ALL)
@pytest.mark.parametrize("suffix", [".png", ".svg", ".PNG"])
def test_a_picture_is_saved_as_its_suffix_says(draw, suffix, tmp_path):
    path = tmp_path / f"picture{suffix}"
    pictures.save(draw(), path)
    start = path.read_bytes()[:5]
    assert start == (b"<?xml" if suffix == ".svg" else b"\x89PNG\r")


@pytest.mark.parametrize("name", ["picture.pdf", "picture", "picture.html"])
def test_other_suffixes_are_refused_in_a_sentence(name, tmp_path):
    with pytest.raises(InvalidInput, match=r"\.png or \.svg"):
        pictures.save(levels(), tmp_path / name)
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("draw", ALL)
def test_a_picture_for_a_page_fetches_nothing_and_follows_it_into_the_dark(draw):
    kind, _, encoded = pictures.data_uri(draw()).partition(",")
    assert kind == "data:image/svg+xml;base64"
    text = base64.b64decode(encoded).decode()
    ElementTree.fromstring(text)
    assert text.replace("http://www.w3.org/", "").count("http") == 0
    assert "prefers-color-scheme:dark" in text
    assert all(f"var(--c{number})" in text for number in (0, 1))
    assert "#222222" not in text.partition("</style>")[2]


@pytest.mark.parametrize("draw", ALL)
def test_curves_are_told_apart_without_colour(draw):
    for axes in draw().axes:
        looks = [
            (line.get_linestyle(), line.get_marker())
            for line in axes.get_lines()
            if line.get_marker() not in ("_", "|") and not line.get_label().startswith("_child")
        ]
        assert len(looks) == len(set(looks))


@pytest.mark.parametrize("draw", ALL)
def test_no_word_is_cut(draw):
    figure = draw()
    figure.canvas.draw()
    parts = [*figure.axes, *figure.texts, *figure.legends]
    assert len(parts) > 1
    for box in (each.get_tightbbox() for each in parts):
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1


def test_the_share_within_the_bars_is_of_all_numbers():
    assert "95.0% of 1,000 numbers" in words(scatter())
    assert "65.4% of 1,000 numbers" in words(scatter(sigmas=2.0))
    assert "100.0% of 1,000 numbers" in words(scatter(sigmas=0.0))
    assert "are drawn" not in words(scatter(200))


def test_few_points_are_drawn_and_from_all_over():
    exact = np.arange(5000.0)
    figure = pictures.exact_against_private(exact, exact, np.ones(5000))
    [drawn] = [line for line in figure.axes[0].get_lines() if len(line.get_xdata()) > 2]
    x = np.asarray(drawn.get_xdata())
    assert 100 <= len(x) <= 300
    assert x[0] == 0
    assert x[-1] == 4999
    assert np.diff(x).max() < 2 * np.diff(x).min()


def test_whoever_sees_exact_answers_reads_that_they_are_not_private():
    assert pictures.OWNERS_EYES in words(scatter())
    public = pictures.exact_against_private([0.1], [0.2], [0.1], banner="These data are public.")
    assert "These data are public." in words(public)


def test_nothing_to_draw_is_refused():
    with pytest.raises(InvalidInput, match="at least one"):
        pictures.exact_against_private([], [], [])


def test_a_query_adds_up_the_variances_of_its_nodes():
    assert "6" in words(levels()).splitlines()  # √(4·3²)


def test_losses_are_stacked_and_none_is_below_zero():
    [axes] = losses().axes
    tops = [each.get_y() + each.get_height() for each in axes.patches]
    assert tops[-3:] == pytest.approx([0.4, 0.2, 0.12])


def test_the_secret_picture_shows_what_is_allowed_where_something_is():
    [axes] = secrets().axes
    [allowed] = [line for line in axes.get_lines() if "allows" in line.get_label()]
    assert np.isnan(allowed.get_xdata()[0])
    assert allowed.get_xdata()[1] == 0.27


def test_a_stream_has_a_mark_at_its_last_step_once_there_is_one():
    above, _ = stream().axes
    [mark] = [line for line in above.get_lines() if len(set(line.get_xdata())) == 1]
    assert mark.get_xdata()[0] == 20
    assert "step (now: 20)" in words(stream())
    above, _ = stream(step=0).axes
    assert all(len(set(line.get_xdata())) == 3 for line in above.get_lines())
    assert "now" not in words(stream(step=0))


@pytest.mark.parametrize(
    ("told", "at_left", "above"),
    [((0.2, 0.5, 1.5), True, True), ((2.0, 3.0, 9.0), True, False), ((3.0, 0.9, 0.1), False, True)],
)
def test_what_one_means_is_written_where_the_curve_is_not(told, at_left, above):
    _, below = stream(told=told).axes
    [text] = below.texts
    assert (text.get_ha(), text.get_va()) == (
        "left" if at_left else "right",
        "bottom" if above else "top",
    )
    low, high = below.get_ylim()
    assert low < min(1, *told) < max(1, *told) < high


def test_matplotlib_keeps_its_state():
    code = (
        "import matplotlib, sys; before = matplotlib.rcParams.copy()\n"
        "from discreet import pictures\n"
        "pictures.data_uri(pictures.noise_by_level([1, 2], [1.0, 1.0]))\n"
        "assert matplotlib.rcParams.copy() == before\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_budgets_have_a_bar_each():
    figure = pictures.budgets([("clinic\nδ = 1e-05", 1.5, 4.0), ("school\nδ = 1e-06", 0.0, 1.0)])
    [axes] = figure.axes
    assert [each.get_text() for each in axes.texts] == [" ε = 1.5 of 4", " ε = 0 of 1"]
    assert sorted(each.get_width() for each in axes.patches) == [0.0, 1.0, 1.5, 4.0]
    with pytest.raises(InvalidInput, match="at least one data set"):
        pictures.budgets([])


def test_shapes_are_steps_with_bands_and_dots_with_bars():
    first = shape()
    figure = shapes(first, shape("job", categories=4))
    steps, dots = figure.axes
    [stairs] = [each for each in steps.patches if hasattr(each, "get_data")]
    values, ends, _ = stairs.get_data()
    np.testing.assert_array_equal(values, first.values[:, 0])
    np.testing.assert_array_equal(ends, [20, *first.edges, 80])
    [band] = steps.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((-1.2, 1.2))
    [bars] = dots.containers
    assert bars.lines[0].get_xdata().tolist() == pytest.approx([1, 1 / 3, -1 / 3, -1])
    assert next(each.get_text() for each in dots.get_yticklabels()) == "category 3"
    assert steps.get_ylim() == dots.get_xlim()
    assert "±1.96 standard errors of the noise" in words(figure)
    assert "the log-odds of yes against no" in words(figure)


def test_many_categories_are_cut_to_the_largest_and_names_to_a_line():
    panel = shape("n" * 50, categories=40, labels=["$" * 30] * 40, clear=False)
    figure = shapes(panel)
    [axes] = figure.axes
    assert len(axes.get_yticks()) == 10
    drawn = axes.containers[0].lines[0].get_xdata()
    assert np.min(np.abs(drawn)) > 0.7
    assert "10 of 40 categories; not clear of the noise" in words(figure)
    assert axes.get_title(loc="left") == f"{'n' * 29}…  (25%)"
    pictures.data_uri(figure)


def test_dates_are_dates_and_unknown_ranges_end_a_bin_further():
    edges = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], "datetime64[s]").astype(float)
    values = np.zeros((4, 1))
    given = {"edges": edges, "ends": None, "values": values, "margins": values + 1, "dates": True}
    figure = shapes(shape("day", **given))
    figure.canvas.draw()
    [axes] = figure.axes
    assert {"2020", "2021", "2022"} <= {each.get_text() for each in axes.get_xticklabels()}
    days = np.datetime64("2019-01-01") - np.datetime64("1970-01-01")
    assert axes.get_xlim()[0] == pytest.approx(days.astype(int) - 1)


def test_several_scores_have_a_name_and_a_look_each():
    names = ("red", "green", "blue")
    figure = shapes(shape(outputs=3), shape("job", outputs=3, categories=4), outputs=names)
    assert set(names) <= set(words(figure).splitlines())
    looks = {(each.get_edgecolor(), each.get_linestyle()) for each in figure.axes[0].patches}
    assert len(looks) == 3


def test_a_picture_of_no_column_is_refused():
    with pytest.raises(InvalidInput, match="at least one column"):
        pictures.shapes_of_columns([], outputs=(), adds="")
