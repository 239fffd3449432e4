"""What the user calls an object, and where it was made: found by identity on the stack.

Looked for in the user's frames from the innermost outwards, then in the globals of their modules,
then one or two levels into attributes, dicts and lists of those. Where Dask copied or cut what it
was given, the argument of Dask's function that it came from is looked for in its place.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from types import CodeType
from typing import Any, Final, NamedTuple

from stageprof_runtime.assignment import (
    enclosing,
    inner_codes,
    line_in,
    module_code,
    place_in_module,
)
from stageprof_runtime.kinds import CONTAINER, CUSTOM, attributes, kind_of, package_of
from stageprof_runtime.lines import LIBRARIES
from stageprof_runtime.scopes import Scope, Stack

#: Elements of a container, and values in all, that are compared for one object.
ELEMENTS, MOST = 1000, 2000
#: Names that Python's and IPython's prompts give to what was shown last.
_SHOWN: Final = re.compile(r"_{1,3}|_\d+|_i{1,3}|_i\d+|_[iod]h|_exit_code|Out|In")


class Origin(NamedTuple):
    """Where the user has an object from; "" and 0 for what is not known."""

    variable: str
    file: str
    line: int


UNKNOWN: Final = Origin("", "", 0)


def find(value: object, stack: Stack) -> Origin | None:
    """The variable that is this very object, or holds it."""
    passed: Origin | None = None
    for scope in stack.user():
        for name, v in scope.variables.items():
            if v is value and not _SHOWN.fullmatch(name):
                origin = origin_of(scope, name)
                if origin.line and not _is_passed(scope, name):
                    return origin
                passed = passed or origin
    for module, variables in stack.modules():
        for name, v in list(variables.items()):
            if v is value and not _SHOWN.fullmatch(name):
                return Origin(name, *place_in_module(module, name))
    return passed or _inside(value, stack)


def _is_passed(scope: Scope, name: str) -> bool:
    """Whether a function only has a variable from its caller: it is made elsewhere."""
    code = scope.frame.f_code
    return scope.function and name not in code.co_freevars and not line_in(code, name)


def origin_of(scope: Scope, name: str, path: str = "") -> Origin:
    """Where a variable of a scope, or `path` in it, was last assigned."""
    code, at = scope.frame.f_code, scope.frame.f_lasti
    line = (line_in(code, name, path, at) if path else 0) or line_in(code, name, "", at)
    if not line and not scope.function:
        module = str(scope.frame.f_globals.get("__name__", ""))
        return Origin(name + path, *place_in_module(module, name))
    if not line and name in code.co_freevars:
        line = _line_around(code, name)
    return Origin(name + path, code.co_filename, line or code.co_firstlineno)


def _line_around(code: CodeType, name: str) -> int:
    """The line in the functions around, innermost first, that assigns a variable of theirs."""
    qualname = code.co_qualname
    while (around := enclosing(code.co_filename, qualname)) is not None:
        line = line_in(around, name)
        if line or name not in around.co_freevars:
            return line or around.co_firstlineno
        qualname = around.co_qualname
    return 0


def _inside(value: object, stack: Stack) -> Origin | None:
    """The variable that has the object as an attribute or element, at one level or two."""
    for scope in stack.user():
        for name, path in _ways(value, scope.variables):
            return _origin_inside(scope, name, path)
    for module, variables in stack.modules():
        for name, path in _ways(value, variables):
            return Origin(name + path, *place_in_module(module, name))
    return None


def _ways(value: object, variables: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(variable, way from it) to the object, from the first `MOST` values inside variables."""
    left = MOST
    for name, v in list(variables.items()):
        if kind_of(v) in (CUSTOM, CONTAINER) and not _SHOWN.fullmatch(name):
            for path, held in itertools.islice(_reach(v), left):
                left -= 1
                if held is value:
                    yield name, _public(path) if package_of(type(v)) in LIBRARIES else path
        if left <= 0:
            return


def _public(path: str) -> str:
    """The way to what a library's object holds: where it is hidden the object stands for it."""
    return path.partition("._")[0]


def _origin_inside(scope: Scope, name: str, path: str) -> Origin:
    """Where `self.table = ...` stands, which may be another method than the one that is running."""
    code = scope.frame.f_code
    if path.startswith(".") and not line_in(code, name):
        whole = module_code(code.co_filename)
        for inner in inner_codes(whole) if whole is not None else ():
            line = line_in(inner, name, path)
            if line:
                return Origin(name + path, code.co_filename, line)
    return origin_of(scope, name, path)


def _reach(value: object) -> Iterator[tuple[str, object]]:
    """What is one and two levels inside a value, with the way to it; nearest first."""
    first = []
    for path, part in _parts(value):
        yield path, part
        first.append((path, part))
    for path, part in first:
        for more, inner in _parts(part):
            yield path + more, inner


def _parts(value: Any) -> Iterator[tuple[str, object]]:
    kind = kind_of(value)
    # Copied at once: it is the user's, and other threads may change it meanwhile.
    if kind == CUSTOM:
        for name, v in attributes(value).items():
            yield f".{name}", v
    elif kind == CONTAINER:
        pairs: Iterable[tuple[Any, Any]]
        pairs = value.items() if type(value) is dict else enumerate(value)
        for key, v in list(itertools.islice(pairs, ELEMENTS)):
            yield f"[{key!r}]" if type(key) in (str, int, float) else "[...]", v


def by_hint(function: Any, name: str) -> Origin:
    """Where a name that a function carries was assigned: around it, or in its module."""
    code = getattr(function, "__code__", None)
    if code is None or not name:
        return UNKNOWN
    if name in code.co_freevars:
        return Origin(name, code.co_filename, _line_around(code, name))
    if name in code.co_names:
        return Origin(name, *place_in_module(str(function.__module__), name))
    return Origin(name, code.co_filename, code.co_firstlineno)
