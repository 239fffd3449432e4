"""Functions that are pickled by value say on a worker where they were written."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

import pytest
from distributed import Client

import stageprof
from stageprof_runtime import process
from stageprof_runtime.compat import cloudpickle
from stageprof_runtime.probes import sources


def by_value() -> Callable[[], tuple[list[str], bytes]]:
    """A function within another, with one within."""

    def task() -> tuple[list[str], bytes]:
        def inner() -> str:
            return sys._getframe().f_code.co_filename

        return [sys._getframe().f_code.co_filename, inner()], cloudpickle.dumps(inner)

    return task


@pytest.mark.cluster
def test_code_of_a_recorded_worker_names_its_file_and_is_pickled_as_ever(client: Client) -> None:
    _, bare = client.submit(by_value(), pure=False).result()
    with stageprof.profile() as prof:
        files, recorded = client.submit(by_value(), pure=False).result()
    assert files == [__file__, __file__]
    assert bare == recorded
    assert prof.recording.coverage()["disabled"] == []


@pytest.mark.cluster
def test_code_that_a_recorded_scheduler_runs_names_its_file(client: Client) -> None:
    with stageprof.profile():
        files, _ = client.run_on_scheduler(by_value())
    assert files == [__file__, __file__]


def dynamic(scope: dict[str, Any], code: CodeType | None = None) -> CodeType:
    """The code of a function as cloudpickle makes it, with what it has of its globals."""
    code = sources.written_in(code or by_value().__code__, sources.DYNAMIC)
    leave = process.share(sources.install)
    try:
        made = cloudpickle.cloudpickle._make_function(code, scope, None, None, None)
    finally:
        leave()
    found: CodeType = made.__code__
    return found


def test_code_within_code_is_of_the_same_file() -> None:
    made = dynamic({"__file__": "etl.py"})
    assert made.co_filename == "etl.py"
    assert {c.co_filename for c in made.co_consts if isinstance(c, CodeType)} == {"etl.py"}
    assert dynamic({"__file__": "etl.py"}) is made


def test_a_method_that_dataclasses_wrote_is_of_no_file() -> None:
    code = vars(dataclasses.make_dataclass("Point", ["x"]))["__init__"].__code__
    assert dynamic({"__file__": "etl.py"}, code).co_filename == sources.DYNAMIC


@pytest.mark.parametrize("scope", [{}, {"__file__": None}, {"__file__": 7}])
def test_what_has_no_file_is_left_alone(scope: dict[str, Any]) -> None:
    assert dynamic(scope).co_filename == sources.DYNAMIC


CELL = """
def double(x):
    import sys
    return sys._getframe().f_code.co_filename, 2 * x
"""


@pytest.mark.cluster
def test_code_of_a_notebook_names_its_cell_and_its_tasks_are_called_as_ever(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    file, scope = "/tmp/ipykernel_41/2903.py", {"__name__": "__main__"}
    exec(compile(CELL, file, "exec"), scope)
    double: Any = scope["double"]
    bare = client.submit(double, 1).key
    with stageprof.profile() as prof:
        future = client.submit(double, 2)
        assert future.result() == (file, 4)
        assert client.submit(double, 1).key == bare
    assert prof.recording.coverage()["disabled"] == []


@pytest.mark.cluster
def test_a_text_that_a_script_executes_is_not_of_the_scripts_file(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__file__", __file__, raising=False)
    scope: dict[str, Any] = {"__name__": "__main__", "__file__": __file__}
    exec(CELL, scope)
    double: Any = scope["double"]
    bare = client.submit(double, 1).key
    with stageprof.profile():
        assert client.submit(double, 2).result() == ("<string>", 4)
        assert client.submit(double, 1).key == bare
