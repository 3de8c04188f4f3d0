import pickle

import pytest

import discreet
from discreet import _validate, errors
from discreet.shards.tasks import guarded


def test_every_error_is_exported_at_the_top():
    names = [name for name in vars(errors) if isinstance(vars(errors)[name], type)]
    assert len(names) == 9
    assert all(getattr(discreet, name) is getattr(errors, name) for name in names)
    assert set(names) <= set(discreet.__all__)


def test_the_tree_is_what_its_drawing_says():
    assert issubclass(errors.InvalidInput, errors.DiscreetError)
    assert issubclass(errors.InvalidInput, ValueError)
    assert issubclass(errors.BudgetExceeded, errors.DiscreetError)
    assert issubclass(errors.CorruptRelease, errors.DiscreetError)
    assert issubclass(errors.MostlyNoiseWarning, UserWarning)
    assert issubclass(errors.NotPrivateWarning, UserWarning)
    assert issubclass(errors.PrivacyLeakWarning, UserWarning)
    for name in (
        "DiscreetError",
        "InvalidInput",
        "BudgetExceeded",
        "CorruptRelease",
        "MostlyNoiseWarning",
    ):
        assert name in errors.__doc__


def refused(value, *, needs=None):
    with pytest.raises(errors.InvalidInput) as caught:
        _validate.reject("epsilon", value, "a finite number > 0", needs=needs)
    return caught.value


def carried(error):
    return error.argument, error.value, error.wanted, error.needs


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (-1, -1),
        (None, None),
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 80 + "..."),
        ((3, 4), (3, 4)),
        ((3.5, 4), "<tuple>"),
        ([1.0], "<list>"),
        pytest.param(10**5000, "<int>", id="long"),
    ],
)
def test_an_error_carries_what_its_sentence_is_made_of_and_no_more(value, kept):
    error = refused(value)
    assert carried(error) == ("epsilon", kept, "a finite number > 0", None)
    assert str(error).startswith("Expected epsilon=")
    assert str(error).endswith(" to be a finite number > 0.")


def test_an_error_of_no_argument_carries_none():
    error = errors.InvalidInput("Expected something else.")
    assert str(error) == "Expected something else."
    assert carried(error) == (None, None, None, None)


def test_what_an_error_carries_survives_a_copy_and_pickling():
    error = refused(-1, needs="delta")
    error.add_note("row 17 is secret")
    for other in (error.copy(), pickle.loads(pickle.dumps(error))):
        assert type(other) is errors.InvalidInput
        assert (str(other), carried(other)) == (str(error), carried(error))
    assert not hasattr(error.copy(), "__notes__")


def test_what_a_worker_sends_carries_as_much_and_nothing_that_it_came_from():
    def work():
        try:
            raise ZeroDivisionError("row 17 is secret")
        except ZeroDivisionError:
            _validate.real("epsilon", -1, above=0)

    with pytest.raises(errors.InvalidInput) as caught:
        guarded(work)
    assert carried(caught.value) == ("epsilon", -1, "a finite number and > 0", None)
    assert caught.value.__context__ is None
