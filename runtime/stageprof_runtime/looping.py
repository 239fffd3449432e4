"""Where a function loops, and in which loops over the rows of a frame.

A generator such as `DataFrame.iterrows` is not on the stack while the body of its loop runs, so
that a look at the stack cannot see it. The function's bytecode can: a loop is what lies between
the target of a jump backward and the jump, and a loop over rows one whose iterator was made by a
method that gives rows.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from itertools import pairwise
from types import CodeType
from typing import Final, NamedTuple

from stageprof_runtime.codes import Codes

#: Methods that give a frame's rows one by one.
ROWS: Final = frozenset({"iterrows", "itertuples"})
#: Bytes of bytecode above which a function is not looked through: some 2 ms for 10,000.
MOST: Final = 20_000
#: Functions that are kept: cells of a notebook are new ones each time. And those that were met
#: lately, 5 kB each, where each task has one of its own.
KEPT: Final = 5_000
MET: Final = 1_000

#: Bytes of the instruction that asks for the next item of a loop, with its cache.
NEXT: Final = 4

#: What the code of comprehensions is called.
COMPREHENSIONS: Final = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


class Loop(NamedTuple):
    """Offsets of a loop's first instruction and of its last, its line, and whose rows it takes."""

    first: int
    last: int
    line: int
    #: "iterrows", "itertuples", or "" for a loop over anything else
    rows: str


class Loops(NamedTuple):
    """The loops of one function, its comprehensions over rows, and its calls along them."""

    loops: tuple[Loop, ...]
    #: code -> (line, rows)
    inner: dict[CodeType, tuple[int, str]]
    #: offsets of calls with `axis=1` or `axis="columns"` as their last keyword
    rowwise: frozenset[int]

    def by_rows(self, offset: int) -> bool:
        """Whether the call that the function stands at goes along the rows."""
        return offset in self.rowwise

    def begun(self, offset: int) -> Loop | None:
        """The loop whose next item the function is at; of several from there the longest."""
        here = [loop for loop in self.loops if loop.first <= offset <= loop.first + NEXT]
        return max(here, key=lambda loop: loop.last, default=None)

    def at(self, offset: int) -> Loop | None:
        """The innermost loop over rows around an instruction, or else the innermost loop."""
        around = [loop for loop in self.loops if loop.first <= offset <= loop.last]
        return min(around, key=_inside, default=None)


def _inside(loop: Loop) -> tuple[bool, int]:
    return not loop.rows, loop.last - loop.first


NONE: Final = Loops((), {}, frozenset())

_known: dict[CodeType, Loops] = {}


def _loops(code: CodeType) -> Loops:
    """By what the code is: a task's function is unpickled anew for each task."""
    known = _known.get(code)
    if known is None:
        if len(_known) >= KEPT:
            _known.clear()
        known = _known[code] = _read(code) if len(code.co_code) <= MOST else NONE
    return known


def lines_of(code: CodeType, loop: Loop) -> tuple[int, int]:
    """The first and the last line of a loop of a function's; (0, 0) if it has none."""
    spans = code.co_lines()
    lines = [line for start, _, line in spans if line and loop.first <= start <= loop.last]
    return min(lines, default=0), max(lines, default=0)


#: The loops of a function.
loops_of: Final = Codes(_loops, MET).of


def _read(code: CodeType) -> Loops:
    instructions = list(dis.get_instructions(code))
    over = dict(_iterated(instructions))
    loops = [_loop(i, over) for i in instructions if "JUMP_BACKWARD" in i.opname]
    lines = {i.offset: i.positions.lineno or 0 for i in instructions if i.positions is not None}
    placed = [loop._replace(line=lines.get(loop.first, 0)) for loop in loops]
    inner = {c: (line, rows) for c, (line, rows) in over.items() if isinstance(c, CodeType)}
    return Loops(tuple(placed), inner, frozenset(_rowwise(code, instructions)))


def _rowwise(code: CodeType, instructions: list[dis.Instruction]) -> Iterator[int]:
    """The names of keywords come right before the call, and their values right before them.

    While a function of Python's is called, the caller stands at the caches behind its call.
    """
    names: object = None
    value: object = None
    for instruction, following in pairwise(instructions):
        if instruction.opname == "KW_NAMES" or following.opname == "CALL_KW":
            names = code.co_consts[instruction.arg or 0]
        elif instruction.opname == "LOAD_CONST":
            value = instruction.argval
        elif instruction.opname in ("CALL", "CALL_KW"):
            if type(names) is tuple and names[-1:] == ("axis",) and value in (1, "columns"):
                yield from range(instruction.offset, following.offset, 2)
            names = value = None


def _loop(jump: dis.Instruction, over: dict[int | CodeType, tuple[int, str]]) -> Loop:
    first = int(jump.argval)
    return Loop(first, jump.offset, 0, over.get(first, (0, ""))[1])


def _iterated(
    instructions: list[dis.Instruction],
) -> Iterator[tuple[int | CodeType, tuple[int, str]]]:
    """What goes over rows: the offset of a loop's FOR_ITER, or a comprehension's code."""
    rows, line, made = "", 0, None
    for i, instruction in enumerate(instructions):
        name, value = instruction.opname, instruction.argval
        if name in ("LOAD_METHOD", "LOAD_ATTR") and value in ROWS:
            rows, line = value, (instruction.positions and instruction.positions.lineno) or 0
        elif isinstance(value, CodeType) and value.co_name in COMPREHENSIONS:
            made = value
        elif name == "GET_ITER" and rows:
            looping = _for_iter(instructions[i + 1 : i + 9])
            if looping is not None:
                yield looping, (line, rows)
            elif made is not None:
                yield made, (line, rows)
            rows = ""
        elif name.startswith("STORE") or _is_left(instructions, i):  # a call went over them
            rows = ""


def _is_left(instructions: list[dis.Instruction], i: int) -> bool:
    """Whether what a call gave is thrown away here; `a or b` throws away something else."""
    return instructions[i].opname == "POP_TOP" and "CALL" in instructions[i - 1].opname


def _for_iter(following: list[dis.Instruction]) -> int | None:
    """The loop that begins right after GET_ITER; there is none if a comprehension is called."""
    for instruction in following:
        if instruction.opname == "FOR_ITER":
            return instruction.offset
        if "CALL" in instruction.opname:
            return None
    return None
