"""What stands around Python's own import: it is not seen, and does what it does once."""

from __future__ import annotations

import asyncio
import importlib
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import stageprof
from stageprof_runtime import arrival
from stageprof_runtime.arrival import arrived
from stageprof_runtime.patch import Undo

NAMES = ("arriving", "arriving_deep_0", "arriving_deep_1", "arriving_deep_2")


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose modules can be imported, and are forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    forget()
    assert arrival._waiting == []


def forget() -> None:
    for name in NAMES:
        sys.modules.pop(name, None)


def test_a_module_is_met_once_however_often_it_is_imported(modules: Path) -> None:
    """Wrapped again by each `import_module`, a function of its had a layer more each time."""
    (modules / "arriving.py").write_text("")
    met: list[ModuleType] = []

    def then(_: str, module: ModuleType) -> list[Undo]:
        met.append(module)
        return []

    undo = arrived(["arriving"], then)
    try:
        for _ in range(3):
            importlib.import_module("arriving")
        first = sys.modules.pop("arriving")
        importlib.import_module("arriving")
    finally:
        undo()
    assert met == [first, sys.modules["arriving"]]


def test_what_is_done_as_all_is_taken_back_is_taken_back_at_once(modules: Path) -> None:
    """A module may take seconds to import: its thread comes to it when the session is over."""
    (modules / "arriving.py").write_text("")
    done: list[str] = []

    def then(_: str, module: ModuleType) -> list[Undo]:
        undo()
        done.append("done")
        return [lambda: done.append("undone")]

    undo = arrived(["arriving"], then)
    importlib.import_module("arriving")
    assert done == ["done", "undone"]


@pytest.mark.parametrize("error", [RuntimeError, asyncio.CancelledError, SystemExit])
def test_what_fails_as_a_module_arrives_is_no_failure_of_its_import(
    error: type[BaseException], modules: Path
) -> None:
    """F1: nor of what others do to it."""
    (modules / "arriving.py").write_text("")
    met: list[str] = []

    def fails(_: str, module: ModuleType) -> list[Undo]:
        met.append("fails")
        raise error("planted")

    def goes_on(_: str, module: ModuleType) -> list[Undo]:
        met.append("goes on")
        return []

    undos = [arrived(["arriving"], then) for then in (fails, goes_on)]
    try:
        assert importlib.import_module("arriving").__name__ == "arriving"
    finally:
        for undo in undos:
            undo()
    assert met == ["fails", "goes on"]


def test_two_that_wait_share_one_function_and_leave_in_any_order() -> None:
    bootstrap = importlib.import_module("importlib._bootstrap")
    before = bootstrap._find_and_load
    first = arrived(["arriving"], lambda *_: [])
    ours = bootstrap._find_and_load
    second = arrived(["arriving"], lambda *_: [])
    assert bootstrap._find_and_load is ours is not before
    first()
    first()
    assert bootstrap._find_and_load is ours
    second()
    assert bootstrap._find_and_load is before


def test_a_warning_of_an_import_is_for_the_line_that_imports(modules: Path) -> None:
    """It was for a line of ours: one that a filter of the user's let pass was an error."""
    (modules / "arriving.py").write_text("import warnings\nwarnings.warn('old', stacklevel=2)")
    with stageprof.profile(gil=False), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        import arriving  # type: ignore[import-not-found]  # noqa: F401
    assert [warning.filename for warning in caught if str(warning.message) == "old"] == [__file__]


def test_the_traceback_of_a_failed_import_is_as_without_us() -> None:
    with stageprof.profile(gil=False), pytest.raises(ImportError) as failed:
        import arriving  # noqa: F401
    assert [frame.filename for frame in traceback.extract_tb(failed.tb)] == [__file__]


def test_a_module_that_is_imported_in_another_is_two_frames_deeper_at_most(modules: Path) -> None:
    """Python has room for a thousand: with eighteen more for each, no forty of them had room."""
    depth = "import inspect\nDEPTH = len(inspect.stack(0))\n"
    for i in range(2):
        (modules / f"arriving_deep_{i}.py").write_text(f"{depth}import arriving_deep_{i + 1}")
    (modules / "arriving_deep_2.py").write_text(depth)
    bare = _deeper()
    with stageprof.profile(gil=False):
        recorded = _deeper()
    assert recorded - bare <= 2 * 2


def _deeper() -> int:
    """How much deeper the last of the modules is imported than the first."""
    forget()
    importlib.import_module("arriving_deep_0")
    last, first = (int(sys.modules[f"arriving_deep_{i}"].__dict__["DEPTH"]) for i in (2, 0))
    return last - first
