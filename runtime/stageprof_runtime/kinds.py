"""What kind of thing a value is, told from its type alone: no code of the user's is run.

Values of a graph are of four kinds: parts of the graph itself (tasks, layers, expressions), plain
values that are looked at without asking them (numbers, texts, builtin containers), functions and
classes, and data: everything else. Answers are kept by type.
"""

from __future__ import annotations

import array
import datetime as dt
import decimal
import enum
import fractions
import functools
import pathlib
import sys
import types
import uuid
from typing import Any, Final

from stageprof_runtime.classes import Known

STRUCTURE, ATOM, TEXT, CONTAINER, FUNCTION, DATA, CUSTOM = range(7)

#: Too small to matter, whatever their value.
_ATOMS: Final = (
    type(None), bool, int, float, complex, slice, range, type(Ellipsis), type(NotImplemented),
    dt.date, dt.datetime, dt.time, dt.timedelta, dt.timezone,
    decimal.Decimal, fractions.Fraction, pathlib.PosixPath, pathlib.WindowsPath, uuid.UUID,
    types.ModuleType, type,
)  # fmt: skip
_TEXTS: Final = (str, bytes, bytearray, memoryview, array.array)
_CONTAINERS: Final = (list, tuple, set, frozenset, dict)
_FUNCTIONS: Final = (
    types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools.partial,
    types.MethodWrapperType, types.WrapperDescriptorType, types.MethodDescriptorType,
)  # fmt: skip
#: Packages whose classes are the graph, and such whose classes pickle fast for their bytes.
_GRAPH: Final = frozenset({"dask", "distributed", "toolz", "tlz", "cytoolz"})
_LIBRARIES: Final = frozenset({"numpy", "pandas", "pyarrow", "scipy", "builtins", "collections"})

#: Of these packages only classes derived from these hold data; the rest are dtypes, scalars.
_DATA: Final = {
    "numpy": frozenset({"ndarray"}),
    "pandas": frozenset({"NDFrame", "Index", "ExtensionArray"}),
}

#: The ids of classes that make atoms of those derived from them.
_ATOMIC: Final = frozenset(map(id, (type, enum.Enum)))

_module = type.__dict__["__module__"].__get__
_name = type.__dict__["__qualname__"].__get__

#: Of each class that was ever in a graph, and is still there, its kind.
_known: Final = Known()
for _kind, _classes in (
    (ATOM, _ATOMS), (TEXT, _TEXTS), (CONTAINER, _CONTAINERS), (FUNCTION, _FUNCTIONS)
):  # fmt: skip
    for _class in _classes:
        _known.remember(_class, _kind)
_numbers: Final = _known.numbers


def kind_of(value: object) -> int:
    """Which of the kinds above a value is.

    `CUSTOM` is data of a class that the user, or a library that Dask knows nothing of, has written.
    """
    cls = type(value)
    kind = _numbers.get(id(cls))
    return _known.remember(cls, _judge(cls)) if kind is None else kind


def _judge(cls: type) -> int:
    package = package_of(cls)
    if package in _GRAPH:
        return STRUCTURE
    bases = type.__dict__["__mro__"].__get__(cls)
    if not _ATOMIC.isdisjoint(map(id, bases)):  # a metaclass may have an `==` of its own
        return ATOM
    if package in _DATA and not _DATA[package].intersection(_name(base) for base in bases):
        return ATOM
    return DATA if package in _LIBRARIES else CUSTOM


def package_of(cls: type) -> str:
    """The top-level package of a class, "" where it does not say."""
    module = _module(cls)
    return module.partition(".")[0] if type(module) is str else ""


def title(cls: type) -> str:
    """A class as a user would write it: module without private parts, and name."""
    module = _module(cls)
    name = str(_name(cls))
    if type(module) is not str or module in ("builtins", "__main__"):
        return name
    package = module.partition(".")[0]
    return f"{package if package in _LIBRARIES else module}.{name}"


def is_a(value: object, module: str, name: str) -> bool:
    """Whether a value's class or one of its bases is `module.name`; imports nothing."""
    there = sys.modules.get(module)
    wanted = getattr(there, name, None)
    bases = type.__dict__["__mro__"].__get__(type(value))
    return wanted is not None and id(wanted) in map(id, bases)


def attributes(value: object) -> dict[str, Any]:
    """What a value holds in `__dict__` and slots, without asking it."""
    cls = type(value)
    found: dict[str, Any] = {}
    for base in type.__dict__["__mro__"].__get__(cls):
        for name, member in base.__dict__.items():
            if type(member) is types.MemberDescriptorType:
                try:
                    found.setdefault(name, member.__get__(value, cls))
                except AttributeError:  # never set
                    continue
    own = _own(value, cls)
    return found | own if type(own) is dict else found


def _own(value: object, cls: type) -> object:
    """The `__dict__` of a value, unless its class has something else of that name: it may run."""
    for base in type.__dict__["__mro__"].__get__(cls):
        member = base.__dict__.get("__dict__")
        if type(member) is types.GetSetDescriptorType:
            return member.__get__(value, cls)
        if member is not None:
            break
    return None
