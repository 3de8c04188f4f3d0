import discreet
from discreet import errors


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
