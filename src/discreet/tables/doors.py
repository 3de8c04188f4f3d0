"""What lets a front door take a store of vectors in the place of arrays."""

import functools
import inspect
from collections.abc import Callable
from contextlib import closing
from typing import ParamSpec, TypeVar, cast

from discreet.tables import stores
from discreet.tables.columns import Names
from discreet.tables.rows import Rows

Parameters = ParamSpec("Parameters")
Made = TypeVar("Made")
Door = Callable[Parameters, Made]


def takes_stores(role: str) -> Callable[[Door[Parameters, Made]], Door[Parameters, Made]]:
    """Let a function take a store for its first argument, and names of its columns for two more.

    What the store keeps between passes is let go of at the end. All other calls are as they were.

    Args:
        role: what its second argument is called; the other one is `groups`.
    """

    def take(door: Door[Parameters, Made]) -> Door[Parameters, Made]:
        signature = inspect.signature(door)
        first = next(iter(signature.parameters))

        @functools.wraps(door)
        def opened(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Made:
            given = signature.bind(*args, **kwargs).arguments
            if not stores.is_store(given[first]):
                return door(*args, **kwargs)
            target, groups = given.pop(role, None), given.pop("groups", None)
            with closing(_rows(given[first], role, target, groups)) as given[first]:
                return cast("Callable[..., Made]", door)(**given)

        return opened

    return take


def _rows(store: object, role: str, target: object, groups: object) -> Rows:
    """Return the rows of a store; of an index of FAISS, whose columns come as arrays, too."""
    if stores.is_index(store):
        store = stores.with_columns(store, **{role: target, "groups": groups})
        target = role if target is not None else None
        groups = "groups" if groups is not None else None
    names = cast("Names | None", target)
    labelled = role == "labels"
    return Rows(
        store,
        values=None if labelled else names,
        labels=cast("str | None", names) if labelled else None,
        groups=cast("str | None", groups),
    )
