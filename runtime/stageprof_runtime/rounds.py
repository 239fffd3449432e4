"""Lines that hand over graphs again and again: does the next one need what the last one gave?

Read from the program's text when the recording ends, once for each such line, and only names are
looked at: the result of the call, what is made of it in the loop, and what the next call is made
of. What a function does that the loop calls is not followed. Where the loop is Dask's own (it goes
through a frame's rows, a partition at a time), that was seen when it handed a graph over.
"""

from __future__ import annotations

import ast
import contextlib
import linecache
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from types import FrameType
from typing import Final

from stageprof_runtime.assignment import HEARD
from stageprof_runtime.clock import thread_ns
from stageprof_runtime.lines import called_by_user, user_line
from stageprof_runtime.touched import loads, sets, stores

#: Fewer calls from one line are no loop that matters.
LEAST: Final = 3
#: Lines that are looked up, at most; and no longer programs are parsed, bytes.
LINES: Final = 100
LONGEST: Final = 1_000_000
#: So long the thread looks at programs, ns: of the lines that are left nothing is known then.
PATIENCE_NS: Final = 500_000_000

#: No round of the loop needs what an earlier one computed; one does; it cannot be told; the loop is
#: Dask's, through the rows of a frame.
APART: Final = "apart"
CARRIED: Final = "carried"
UNKNOWN: Final = "unknown"
ROWS: Final = "rows"

#: How many graphs each of the user's lines has handed over since recording began.
handed: Final[Counter[tuple[str, int]]] = Counter()
#: Those of them that go through a frame: what they call computes its partitions one by one.
_through: Final[set[tuple[str, int]]] = set()
_GO_THROUGH: Final = frozenset({"__iter__", "iterrows", "itertuples"})

_COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOOPS: Final = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
#: What is in them is run whatever was before, but for errors.
_CERTAIN: Final = (ast.With, ast.AsyncWith, ast.Try, ast.TryStar)


def count(frame: FrameType) -> tuple[str, int]:
    """A graph is handed over from here: the user's line that does so."""
    line = user_line(frame)
    handed[line] += 1
    if handed[line] == 1 and called_by_user(frame) in _GO_THROUGH:
        _through.add(line)
    return line


def forget() -> None:
    """Forget all lines."""
    handed.clear()
    _through.clear()


def told() -> Iterator[str]:
    """For each line that handed over several graphs "verdict file:line"."""
    trees: dict[str, ast.AST] = {}
    until = thread_ns() + PATIENCE_NS
    for (file, line), number in handed.most_common(LINES):
        if number < LEAST or not file:
            continue
        if (file, line) in _through:
            says = ROWS
        elif thread_ns() > until:
            says = UNKNOWN
        else:
            if file not in trees:
                linecache.checkcache(file)  # a notebook's user edits modules between two recordings
                trees[file] = _parsed("".join(linecache.getlines(file)))
            says = _verdict(trees[file], line)
        yield f"{says} {file}:{line}"


def verdict(source: str, line: int) -> str:
    """Whether rounds of the loop around a line need each other's results."""
    return _verdict(_parsed(source), line)


def _parsed(source: str) -> ast.AST:
    """The program; an empty one if it is too long or none."""
    if len(source) <= LONGEST:
        unreadable = contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError)
        with unreadable, warnings.catch_warnings(action="ignore", category=HEARD):
            return ast.parse(source)
    return ast.Module([], [])


def _verdict(tree: ast.AST, line: int) -> str:
    try:
        found = [_of(loop, line) for loop in _around(tree, line)]
    except (RecursionError, MemoryError):
        return UNKNOWN
    if not found:
        return UNKNOWN
    return CARRIED if CARRIED in found else APART


def _around(tree: ast.AST, line: int) -> list[ast.AST]:
    """The loops around a line within its function, outermost first."""
    found: list[ast.AST] = []
    for node in ast.iter_child_nodes(tree):
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0) or 0
        if not first:
            found += _around(node, line)
        elif first <= line <= last:
            inner = _around(node, line)
            if isinstance(node, _FUNCTIONS):
                return inner or []
            mine = isinstance(node, _COMPREHENSIONS) or (
                isinstance(node, _LOOPS) and _in_body(node, line)
            )
            found += [node, *inner] if mine else inner
    return found


def _in_body(loop: ast.AST, line: int) -> bool:
    body = getattr(loop, "body", [])
    return bool(body) and body[0].lineno <= line <= (body[-1].end_lineno or 0)


@dataclass(frozen=True, eq=False)
class _Step:
    """A statement of a loop, or the head of one that has others in it."""

    statement: ast.stmt
    #: the heads that say whether it is run, and the blocks around it that may not be
    heads: tuple[ast.stmt, ...]
    blocks: tuple[int, ...]

    @cached_property
    def loads(self) -> set[str]:
        """Names that it depends on."""
        return set[str]().union(*map(loads, (self.statement, *self.heads)))

    @cached_property
    def stores(self) -> set[str]:
        """Names that it sets or changes."""
        return stores(self.statement)

    @property
    def needs(self) -> set[str]:
        """Names that what it computes depends on: what that is added to is none of them."""
        mine = self.statement
        made = mine.value if isinstance(mine, ast.AugAssign) else mine
        return set[str]().union(*map(loads, (made, *self.heads)))


def _of(loop: ast.AST, line: int) -> str:
    if isinstance(loop, _COMPREHENSIONS):
        return APART  # its rounds have no names to leave anything in
    body = list(_steps(getattr(loop, "body", [])))
    calls = [s for s in body if _spans(s.statement, line)]
    if not calls:
        return UNKNOWN
    tainted = _tainted(body, calls)
    needed = _needed(body, calls) - _fresh(body, calls) - sets(getattr(loop, "target", loop))
    leaving = list(_leaving(loop, line))
    heads = [getattr(loop, name) for name in ("iter", "test") if hasattr(loop, name)]
    needed = needed.union(*map(loads, (*heads, *leaving)))
    left = any(_spans(test, line) for test in leaving)
    return CARRIED if left or needed & tainted else APART


def _spans(node: ast.stmt | ast.expr, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _steps(
    body: list[ast.stmt], heads: tuple[ast.stmt, ...] = (), blocks: tuple[int, ...] = ()
) -> Iterator[_Step]:
    """The statements of a body without others in them, in order; of others their heads, too."""
    for statement in body:
        inner = list(_inner(statement))
        if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)) or not inner:
            yield _Step(statement, heads, blocks)
            continue
        own = list(_heads(statement))
        yield from (_Step(head, heads, blocks) for head in own)
        around = heads if isinstance(statement, _CERTAIN) else (*heads, *own)
        for name, block in inner:
            certain = isinstance(statement, _CERTAIN) and name in ("body", "finalbody")
            yield from _steps(block, around, blocks if certain else (*blocks, id(block)))


def _inner(statement: ast.stmt) -> Iterator[tuple[str, list[ast.stmt]]]:
    """The blocks of a statement, and what each is to it."""
    for name in ("body", "handlers", "cases", "orelse", "finalbody"):
        block = getattr(statement, name, [])
        if name in ("handlers", "cases"):
            yield from ((name, part.body) for part in block)
        elif block:
            yield name, block


def _heads(statement: ast.stmt) -> Iterator[ast.stmt]:
    """What a statement with others in it does before them, as assignments."""
    pairs = [(item.optional_vars, item.context_expr) for item in getattr(statement, "items", [])]
    target = getattr(statement, "target", None)
    names = ("test", "iter", "subject")
    pairs += [(target, getattr(statement, name)) for name in names if hasattr(statement, name)]
    for target, value in pairs:
        yield ast.copy_location(ast.Assign([] if target is None else [target], value), value)


def _leaving(loop: ast.AST, line: int) -> Iterator[ast.expr]:
    """Conditions under which the loop is left early, or a round is before it comes to the line."""
    for node in ast.walk(loop):
        if isinstance(node, ast.If):
            before = (node.test.end_lineno or line) < line
            leaves = (ast.Break, ast.Return, *([ast.Continue] if before else []))
            inner = [s for part in (node.body, node.orelse) for s in part]
            if any(isinstance(x, leaves) for s in inner for x in ast.walk(s)):
                yield node.test


def _tainted(body: list[_Step], calls: list[_Step]) -> set[str]:
    """Names that hold what the calls gave, or what was made of it or because of it."""
    made = [call.statement for call in calls]
    because = [s for s in body if s in calls or any(head in made for head in s.heads)]
    found = {name for step in because for name in step.stores}
    while True:
        more = {n for s in body if s.loads & found for n in s.stores} - found
        if not more:
            return found
        found |= more


def _needed(body: list[_Step], calls: list[_Step]) -> set[str]:
    """Names that the calls are made of, straight or through other statements of the loop."""
    found = {name for call in calls for name in call.needs}
    others = [s for s in body if s not in calls]
    while True:
        more = {n for s in others if s.stores & found for n in s.loads} - found
        if not more:
            return found
        found |= more


def _fresh(body: list[_Step], calls: list[_Step]) -> set[str]:
    """Names that each round sets before it looks at them, if it comes to the calls."""
    seen: set[str] = set()
    fresh: set[str] = set()
    for step in body:
        loads, stores = step.loads, sets(step.statement)
        if all(call.blocks[: len(step.blocks)] == step.blocks for call in calls):
            fresh |= stores - loads - seen
        seen |= loads | stores | step.stores
    return fresh
