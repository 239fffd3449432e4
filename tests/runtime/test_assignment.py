"""The line at which a variable got its value, as its code says."""

from __future__ import annotations

import dis

from stageprof_runtime.assignment import line_in

PROGRAM = """
left = {}
left["x"] = 1
out["left", "x"] = left["x"]
"""


def test_a_pair_that_is_a_key_is_no_element_of_a_variable() -> None:
    code = compile(PROGRAM, "program.py", "exec")
    assert line_in(code, "left", "['x']") == 3
    assert line_in(code, "left") == 2


CHOICE = """
if wide:
    table = 1
elif long:
    table = 2
else:
    table = 3
"""


def test_of_what_each_branch_of_an_if_assigns_it_is_the_if() -> None:
    """It was the last branch, whichever had run."""
    after = compile(CHOICE + "use(table)", "program.py", "exec")
    assert line_in(after, "table") == 2

    again = compile(CHOICE + "table = 4", "program.py", "exec")
    assert line_in(again, "table") == 8


def test_within_a_branch_it_is_what_that_branch_assigned() -> None:
    code = compile(CHOICE + "    use(table)\nuse(table)", "program.py", "exec")
    within, after = (i.offset for i in dis.get_instructions(code) if i.argval == "use")
    assert line_in(code, "table", before=within) == 7
    assert line_in(code, "table", before=after) == 2


def test_an_assignment_that_an_if_does_besides_is_the_last() -> None:
    code = compile("table = 1\nif wide:\n    table = 2\nuse(table)", "program.py", "exec")
    assert line_in(code, "table") == 3
