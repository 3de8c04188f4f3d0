"""Words of the page: tables, numbers, and sentences that must be true."""

import math
import re
import textwrap
from collections.abc import Sequence

from discreet.errors import DiscreetError

_GLUE = "\u00a0"  # a space at which no line ends


def claim(holds: bool, sentence: str) -> str:  # noqa: FBT001 (reads as: claim that so is so)
    """Return a sentence of the page if what it says is so, or refuse to write the page."""
    if not holds:
        raise DiscreetError(f"The measurements do not support a sentence of the page: {sentence}")
    return sentence


def paragraph(*sentences: str) -> list[str]:
    """Return the lines of a paragraph, wrapped, and an empty one after it.

    No line begins with a sign that would make it an item of a list.
    """
    text = re.sub(r" (?=[-+*#>|] )", _GLUE, " ".join(sentences))
    lines = textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False)
    return [line.replace(_GLUE, " ") for line in lines] + [""]


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Return the lines of a table; floats are shown to three digits."""
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(_cell(each) for each in line) + " |" for line in lines] + [""]


def _cell(value: object) -> str:
    return number(value) if isinstance(value, float) else str(value)


def number(value: float, digits: int = 3) -> str:
    """Return a number in plain digits where they are few: 0.0123, 1.50, 1456, 2.69e6; – for none."""
    if value == 0:
        return "0"
    if math.isnan(value):
        return "–"
    if not math.isfinite(value):
        return "∞" if value > 0 else "-∞"
    size = math.floor(math.log10(abs(float(f"{value:.{digits - 1}e}"))))
    if -4 <= size < 4:
        return f"{value:.{max(digits - 1 - size, 0)}f}"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def times(value: float) -> str:
    """Return a factor: 1456×, 5.0×, 1.16×."""
    return f"{number(value, 3 if value < 100 else 4)}×"


def power_of_two(power: int) -> str:
    """Return 2^17 ≈ 1.3e5."""
    return f"2^{power} ≈ {2.0**power:.1e}".replace("e+0", "e").replace("e+", "e")


def setting(value: float) -> str:
    """Return the value of a parameter: 16384, 2^20, 0.25, 1e-6."""
    if value >= 2**17 and float(value).is_integer() and int(value).bit_count() == 1:
        return f"2^{int(value).bit_length() - 1}"
    return f"{value:g}".replace("e-0", "e-")


def listed(items: Sequence[str]) -> str:
    """Return a, b and c."""
    *most, last = items
    return f"{', '.join(most)} and {last}" if most else last
