"""What the library says of its arguments, in the words of the command line.

`rows_hint=0` becomes `--rows-hint 0`. Only names of options of the command that runs are changed,
and only where they cannot be anything else: `name=value` with the value that was typed, products of
names, names in backquotes, and bare names with an underscore. What is in quotes stays as it is, and
so do words of plain English, such as scale or rows.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

# Options that are called otherwise where the library takes them.
OTHER_NAMES = {
    "value_bound": "bound",
    "weight_bound": "bound",
    "p": "power",
    "public_rows": "public",
}

_SAID = re.compile(
    r"""
    (?<!\w)'[^']*'(?!\w) | (?<!\w)"[^"]*"(?!\w)
    | (?<![^\s(\[])(?P<product>\w+(?:\ \*\ \w+)+)=
    | (?<![^\s(\[`])(?P<name>\w+)=(?P<value>'[^']*'|[^\s,;)\]`]+?)(?=[.:]?(?:[\s,;)\]`]|$))
    | (?<=`)(?P<backquoted>\w+)(?=`)
    | (?<![^\s(\[])(?P<bare>\w+_\w+)(?=[.:]?(?:[\s,;)\]]|$))
    """,
    re.VERBOSE,
)


_ADVISED = re.compile(
    r"\b(?P<name>epsilon|features|scale|goal)=(?P<quote>'?)(?P<value>[\w.]+)(?P=quote)"
)


@dataclass(frozen=True)
class Typed:
    """An option, as it is typed, and the value that it has."""

    option: str
    value: object

    def is_shown_as(self, text: str) -> bool:
        """Return whether a message that shows this value would show it so."""
        rounded = f"{self.value:g}" if isinstance(self.value, float) else None
        return text in (repr(self.value), rounded)


def in_options(message: str, options: Mapping[str, Typed]) -> str:
    """Return a message of the library about options, by the names that the library has for them."""

    def changed(found: re.Match[str]) -> str:
        if product := found["product"]:
            names = product.split(" * ")
            if not options.keys() >= set(names):
                return found[0]
            return " * ".join(options[name].option for name in names) + " = "
        typed = options.get(found["name"] or found["backquoted"] or found["bare"] or "")
        if typed is None:
            return found[0]
        if found["name"] is None:
            return typed.option
        if not typed.is_shown_as(found["value"]):  # computed from it, or something else
            return found[0]
        left_out = typed.value is None
        return f"a missing {typed.option}" if left_out else f"{typed.option} {found['value']}"

    return _SAID.sub(changed, message)


def in_flags(text: str) -> str:
    """Return what is advised, with flags to type: `features=4096` becomes `--features 4096`."""
    flagged = _ADVISED.sub(lambda found: f"--{found['name']} {found['value']}", text)
    return re.sub(r"\bpublic_rows\b", "--public", flagged)
