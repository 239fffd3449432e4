"""The line at which a variable got its value, as its code says."""

from __future__ import annotations

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
