"""Each front door says and does by default what the options of its reader say and do."""

import dataclasses
import inspect

import pytest

import discreet
from discreet.readers.attention.options import Options
from discreet.readers.distances.mechanism import DistanceOptions
from discreet.readers.least_squares.mechanism import LeastSquaresOptions
from discreet.readers.softmax.mechanism import SoftmaxOptions
from discreet.sums.mechanism import meanings_of

# What a front door does not take: a caller's helpers declare leaks, and `weights` tells `weighted`.
INNER = {"leaks", "weighted"}

DOORS = {
    discreet.build: Options,
    discreet.build_many: Options,
    discreet.Builder: Options,
    discreet.least_squares: LeastSquaresOptions,
    discreet.LeastSquaresBuilder: LeastSquaresOptions,
    discreet.softmax_regression: SoftmaxOptions,
    discreet.distances: DistanceOptions,
}


@pytest.fixture(params=DOORS, ids=lambda door: door.__name__)
def door(request):
    return request.param


def test_a_door_takes_every_option_and_has_its_default(door):
    parameters = inspect.signature(door).parameters
    options = {each.name: each for each in dataclasses.fields(DOORS[door])}
    assert options.keys() - INNER <= parameters.keys()
    for name in options.keys() & parameters.keys():
        default = options[name].default
        required = default is dataclasses.MISSING
        assert parameters[name].default == (inspect.Parameter.empty if required else default), name
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY, name


def test_a_door_explains_an_option_as_the_options_do(door):
    said, meant = meanings_of(door), meanings_of(DOORS[door])
    shared = inspect.signature(door).parameters.keys() & meant.keys()
    assert {name: said[name] for name in shared} == {name: meant[name] for name in shared}


def test_a_door_explains_every_argument(door):
    assert inspect.signature(door).parameters.keys() <= meanings_of(door).keys()


def test_options_explain_every_field():
    for options in set(DOORS.values()):
        assert meanings_of(options).keys() == {each.name for each in dataclasses.fields(options)}
