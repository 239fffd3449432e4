"""What to do as soon as a module is there: nothing is imported that the user did not import."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from stageprof_runtime.compat import place
from stageprof_runtime.patch import Undo, replace, together

#: What is done to a module of a name that is there; it returns how to take that back.
Then = Callable[[str, ModuleType], Iterable[Undo]]


def arrived(names: Iterable[str], then: Then, *, limited: bool = True) -> Undo:
    """Do it to those of these modules that are there, and to the others once they are.

    `limited` is as with `replace`.
    """
    wanted, undos = frozenset(names), list[Undo]()

    def met(name: str) -> None:
        if (module := sys.modules.get(name)) is not None:
            undos.extend(then(name, module))

    def make(find_and_load: Any) -> Any:
        def _find_and_load(name: str, import_: Any) -> Any:
            module = find_and_load(name, import_)
            if name in wanted:
                met(name)
            return module

        return _find_and_load

    undos.append(replace(*place("python.import"), make, limited=limited))
    for name in wanted:
        met(name)
    return together(undos)
