"""What a function carries with it when it is pickled: closure, defaults, globals, self, arguments.

A function that can be imported travels as its name and carries nothing. Any other (of `__main__`,
nested, a lambda, or registered to be pickled by value) travels whole, with every global that its
code names.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

from stageprof_runtime.compat import cloudpickle
from stageprof_runtime.kinds import title


class Carried(NamedTuple):
    """A value inside a function: how it is in there, and by which name."""

    value: object
    how: str
    name: str


def carried(function: Any) -> Iterator[Carried]:
    """What one function carries; functions inside it are for the caller to follow."""
    name = name_of(function)
    if type(function) is functools.partial:
        yield Carried(function.func, f"function of partial({name})", "")
        for i, value in enumerate(function.args, 1):
            yield Carried(value, f"argument {i} of partial({name})", "")
        for key, value in function.keywords.items():
            yield Carried(value, f"keyword {key} of partial({name})", str(key))
    elif type(function) is types.FunctionType:
        if by_value(function):
            yield from _closure(function, name)
            yield from _defaults(function, name)
            yield from _globals(function, name)
    else:
        owner = getattr(function, "__self__", None)
        if owner is not None and type(owner) is not types.ModuleType:
            yield Carried(owner, f"self of {name}", "self")
        if type(function) is types.MethodType:
            yield Carried(function.__func__, f"function of {name}", "")


def _closure(function: types.FunctionType, name: str) -> Iterator[Carried]:
    names = function.__code__.co_freevars
    for variable, cell in zip(names, function.__closure__ or (), strict=False):
        try:
            yield Carried(cell.cell_contents, f"closure of {name}", variable)
        except ValueError:  # not assigned yet
            continue


def _defaults(function: types.FunctionType, name: str) -> Iterator[Carried]:
    code, values = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
    pairs = [*zip(names, values, strict=False), *(function.__kwdefaults__ or {}).items()]
    for variable, value in pairs:
        yield Carried(value, f"default argument {variable} of {name}", variable)


def _globals(function: types.FunctionType, name: str) -> Iterator[Carried]:
    for variable in global_names(function.__code__):
        if variable in function.__globals__:
            value = function.__globals__[variable]
            yield Carried(value, f"global {variable} of {name}", variable)


@functools.lru_cache(1000)
def global_names(code: types.CodeType) -> frozenset[str]:
    """Names that code, or code inside it, may read as globals; attributes are among them."""
    inner = [global_names(c) for c in code.co_consts if type(c) is types.CodeType]
    return frozenset(code.co_names).union(*inner)


def by_value(function: types.FunctionType) -> bool:
    """Whether a function travels whole: it cannot be imported by its name where it arrives."""
    module = function.__module__
    if type(module) is not str or module == "__main__" or module not in sys.modules:
        return True
    if module in cloudpickle.list_registry_pickle_by_value():
        return True
    here: Any = vars(sys.modules[module])
    for part in function.__qualname__.split("."):
        here = here.get(part) if type(here) in (dict, types.MappingProxyType) else None
        found = here
        here = type.__dict__["__dict__"].__get__(here) if type(here) is type else here
    return getattr(found, "__func__", found) is not function if found is not None else True


def name_of(function: Any) -> str:
    """The name of a function as its author wrote it."""
    if type(function) is functools.partial:
        return name_of(function.func)
    if type(function) is types.MethodType:
        return name_of(function.__func__)
    if isinstance(function, type):
        return title(function)
    if type(function) in (types.FunctionType, types.BuiltinFunctionType):
        return str(function.__qualname__).replace(".<locals>", "")
    return title(type(function))
