"""The line at which a variable got its value, read from the code that assigned it.

Of a function or module that is running, the last assignment before the instruction that it is at;
of one that is not, the last one; of several of which an `if` does one, the `if`. Code of modules
that have run is compiled again from their source, once.
"""

from __future__ import annotations

import dis
import functools
import linecache
import sys
import warnings
from types import CodeType
from typing import Any, Final, NamedTuple

from stageprof_runtime.cells import numbers

#: Source files above this many lines are not compiled for a line number.
LONGEST: Final = 20_000
#: What a compiler warns of, which was heard when the program was compiled to run. Of no others: if
#: another thread comes between, what is ignored here may stay so.
HEARD: Final = SyntaxWarning if sys.version_info >= (3, 12) else DeprecationWarning
#: Imports followed from module to module.
IMPORTS: Final = 4
#: Before the value's own store: the object that it is stored into, and the key.
_BEFORE: Final = 2


class Store(NamedTuple):
    """One assignment in a piece of code."""

    offset: int
    line: int
    #: the variable; or the variable whose attribute or element it is
    name: str
    #: "" | ".attribute" | "[key]"
    path: str
    #: the module that it was imported from
    module: str


@functools.lru_cache(500)
def stores(code: CodeType) -> tuple[Store, ...]:
    """The assignments in a piece of code, in its order."""
    found, line, module = [], code.co_firstlineno, ""
    instructions = list(dis.get_instructions(code))
    for i, this in enumerate(instructions):
        position = this.positions
        line = (position.lineno if position is not None else None) or line
        if this.opname == "IMPORT_NAME":
            module = str(this.argval)
        if this.opname.startswith("STORE_") and this.opname not in _NOT:
            before = instructions[max(0, i - _BEFORE) : i]
            found += _stored(this, before, line, module)
    return tuple(found)


_NOT: Final = ("STORE_SUBSCR", "STORE_ATTR", "STORE_SLICE")


def _stored(this: Any, before: list[Any], line: int, module: str) -> list[Store]:
    imported = bool(before) and before[-1].opname == "IMPORT_FROM"
    names = this.argval if type(this.argval) is tuple else (this.argval,)
    if this.opname == "STORE_FAST_LOAD_FAST":  # the other one is only read
        names = names[:1]
    source = module if imported else ""
    return [Store(this.offset, line, str(name), "", source) for name in names]


@functools.lru_cache(500)
def inner_stores(code: CodeType) -> tuple[Store, ...]:
    """Assignments to attributes and elements of variables: `config.table =`, `tables["x"] =`."""
    found, line = [], code.co_firstlineno
    instructions = [i for i in dis.get_instructions(code) if i.opname != "CACHE"]
    for i, this in enumerate(instructions):
        position = this.positions
        line = (position.lineno if position is not None else None) or line
        loaded = _loaded(instructions[max(0, i - _BEFORE) : i])
        if this.opname == "STORE_ATTR" and loaded:
            base, path = loaded[-1], f".{this.argval}"
        elif this.opname == "STORE_SUBSCR" and len(loaded) >= _BEFORE:
            base, path = loaded[-2], f"[{loaded[-1]!r}]"
        else:
            continue
        if type(base) is str:
            found.append(Store(this.offset, line, base, path, ""))
    return tuple(found)


def _loaded(before: list[Any]) -> list[Any]:
    """What was put on the stack one by one; since Python 3.13 two at once may be."""
    found: list[Any] = []
    for this in before:
        several = this.opname.count("LOAD_FAST") > 1
        found += this.argval if several else (this.argval,)
    return found


def line_in(code: CodeType, name: str, path: str = "", before: int = 2**31) -> int:
    """The line of the last assignment to a variable (or to `name` + `path`) before an offset.

    In a loop the last assignment may come after it in the code. Where an `if` has one in each of
    its branches it is the line of the `if`. 0 if it is never assigned.
    """
    within = inner_stores(code) if path else stores(code)
    mine = [s for s in within if s.name == name and s.path == path]
    earlier = [s for s in mine if s.offset < before] or mine
    chosen = (_choosing(code, s.offset, earlier[-1].offset, before) for s in earlier[:-1])
    return next(filter(None, chosen), earlier[-1].line) if earlier else 0


class Jump(NamedTuple):
    """A jump forward in a piece of code: from an offset to another; `sure` if it is always done."""

    at: int
    to: int
    sure: bool
    line: int


@functools.lru_cache(500)
def jumps(code: CodeType) -> tuple[Jump, ...]:
    """The jumps forward in a piece of code, in its order."""
    found, line = [], code.co_firstlineno
    for this in dis.get_instructions(code):
        position = this.positions
        line = (position.lineno if position is not None else None) or line
        if "JUMP" in this.opname and type(this.argval) is int and this.argval > this.offset:
            found.append(Jump(this.offset, this.argval, this.opname == "JUMP_FORWARD", line))
    return tuple(found)


def _choosing(code: CodeType, first: int, last: int, before: int) -> int:
    """The line of the `if` by which one of two assignments is done before an offset; 0: of none."""
    over = [j.at for j in jumps(code) if j.sure and first < j.at < last < j.to <= before]
    if not over:
        return 0
    into = (j for j in jumps(code) if not j.sure and j.at < first and over[0] < j.to <= last)
    return next((j.line for j in into), 0)


def place_in_module(module: str, name: str, follow: int = IMPORTS) -> tuple[str, int]:
    """File and line where a module's global was assigned; through imports to where it was made."""
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    if not file and module == "__main__":
        return _place_in_cells(name)
    code = module_code(file)
    if code is None:
        return file, 0
    mine = [s for s in stores(code) if s.name == name]
    if mine and mine[-1].module and follow:
        found = place_in_module(mine[-1].module, name, follow - 1)
        if found[1]:
            return found
    if mine:
        return file, mine[-1].line
    lines = [s.line for c in inner_codes(code) for s in stores(c) if s.name == name]
    return file, lines[-1] if lines else 0


def _place_in_cells(name: str) -> tuple[str, int]:
    """Where a variable of a notebook was assigned: in the latest cell that does."""
    for file in reversed(numbers()):
        line = _assigned(file).get(name)
        if line is not None:
            return file, line
    return "", 0


@functools.lru_cache(1000)
def _assigned(file: str) -> dict[str, int]:
    """The line of the last assignment to each global of a cell; its file never changes."""
    code = module_code(file)
    return {} if code is None else {s.name: s.line for s in stores(code)}


def module_code(file: str) -> CodeType | None:
    """The code of a source file as it is now; None if there is none or it cannot be compiled."""
    linecache.checkcache(file)  # a notebook's user edits modules between two recordings
    return _compiled(file, tuple(linecache.getlines(file)))


@functools.lru_cache(100)
def _compiled(file: str, lines: tuple[str, ...]) -> CodeType | None:
    if not lines or len(lines) > LONGEST:
        return None
    try:
        with warnings.catch_warnings(action="ignore", category=HEARD):
            return compile("".join(lines), file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def inner_codes(code: CodeType) -> list[CodeType]:
    """All code inside a piece of code."""
    inner = [c for c in code.co_consts if type(c) is CodeType]
    return inner + [deep for c in inner for deep in inner_codes(c)]


def enclosing(file: str, qualname: str) -> CodeType | None:
    """The code of the function in which another was defined, by the latter's qualified name."""
    outer, _, _ = qualname.rpartition(".<locals>.")
    code = module_code(file)
    if not outer or code is None:
        return None
    mine = [c for c in inner_codes(code) if c.co_qualname == outer]
    return mine[-1] if mine else None
