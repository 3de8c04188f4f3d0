"""Pictures in one style. Needs the extra `plots`.

Functions take plain numbers and return a figure; `save` writes it and `data_uri` puts it in a page.
Curves differ in line and marker as well as in colour, and the colours (Okabe and Ito's) can be told
apart by colour-blind people. Figures are narrow, so that their letters are legible on a phone.
"""

from discreet.pictures.audits import trade_off
from discreet.pictures.figures import (
    OWNERS_EYES,
    Panel,
    accuracy_against_epsilon,
    budgets,
    error_against_epsilon_and_rows,
    error_against_length_and_epsilon,
    errors_of_mechanisms,
    exact_against_private,
    lost_accuracy,
    noise_by_level,
    secrets_found,
    votes,
)
from discreet.pictures.shapes import ShapePanel, shapes_of_columns
from discreet.pictures.streams import noise_of_stream
from discreet.pictures.style import Curve, as_svg, check_suffix, data_uri, dress, save

__all__ = [
    "OWNERS_EYES",
    "Curve",
    "Panel",
    "ShapePanel",
    "accuracy_against_epsilon",
    "as_svg",
    "budgets",
    "check_suffix",
    "data_uri",
    "dress",
    "error_against_epsilon_and_rows",
    "error_against_length_and_epsilon",
    "errors_of_mechanisms",
    "exact_against_private",
    "lost_accuracy",
    "noise_by_level",
    "noise_of_stream",
    "save",
    "secrets_found",
    "shapes_of_columns",
    "trade_off",
    "votes",
]
