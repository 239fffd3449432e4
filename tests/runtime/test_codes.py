"""What is known of code is found by which code it is, and forgotten before it is too much."""

from __future__ import annotations

import itertools
from types import CodeType

from stageprof_runtime.codes import Codes


def made(n: int) -> list[CodeType]:
    """Codes that are equal and not the same, as those of a task's function are."""
    return [compile("x = 1", "file.py", "exec") for _ in range(n)]


def test_each_is_judged_once() -> None:
    numbers = itertools.count(1)
    codes = Codes(lambda _: next(numbers), 10)
    first, second = made(2)
    assert first == second
    assert [codes.of(code) for code in (first, second, first, second)] == [1, 2, 1, 2]


def test_all_are_forgotten_where_there_are_too_many() -> None:
    judged: list[str] = []
    codes = Codes(lambda code: judged.append(code.co_name), 3)
    mine = made(4)
    for code in mine:
        codes.of(code)
    assert len(codes._known) == 1
    codes.of(mine[0])
    assert len(judged) == 5


def test_one_that_is_known_is_kept_so_that_no_other_has_its_number() -> None:
    codes = Codes(lambda code: code.co_filename, 10)
    for i in range(8):
        assert codes.of(compile("x = 1", f"file-{i}.py", "exec")) == f"file-{i}.py"
