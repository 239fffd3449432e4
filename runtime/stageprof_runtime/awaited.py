"""The futures that a call waits for, found in what it was given, which is otherwise the user's."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from types import MethodType
from typing import Any, Final

#: Items looked at for futures.
LOOK: Final = 20_000
#: Items of a container that are all looked at, whatever the first is.
MIXED: Final = 100


def keys(needs: object) -> list[Any]:
    """Keys of the futures in (nested) lists, dicts and bound methods of futures.

    Of what else is there nothing is asked but its type: to answer may take long, or fail.
    """
    found: list[Any] = []
    stack: list[Any] = [needs]
    looked = 0
    while stack and looked < LOOK:
        looked += 1
        item = stack.pop()
        if type(item) is MethodType:
            item = item.__self__
        if _is_future(item):
            found.append(item.key)
        elif _holds(item):
            stack.extend(_inside(item))
    return found


def _is_future(item: object) -> bool:
    from distributed import Future

    return issubclass(type(item), Future)  # `isinstance` would ask the item for its class


def _holds(item: object) -> bool:
    """Whether it may be a container of futures."""
    kind = type(item)
    return kind is list or kind is tuple or kind is dict or kind is set


def _inside(container: Any) -> Iterable[Any]:
    """What is in a container; nothing of a long one whose first item leads to no future."""
    values = container.values() if type(container) is dict else container
    if len(container) > MIXED:
        first = next(iter(values))
        if not _is_future(first) and not _holds(first):
            return ()
    return itertools.islice(values, LOOK)
