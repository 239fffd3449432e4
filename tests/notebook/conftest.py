"""An IPython shell with the magic loaded, and what it shows."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

pytest.importorskip("IPython", reason="IPython is not installed")

from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

import stageprof
from stageprof.magic.words import Words


class Ran(NamedTuple):
    """What came of a cell."""

    result: ExecutionResult
    out: str
    err: str

    @property
    def value(self) -> Any:
        return self.result.result


Cell = Callable[[str], Ran]

#: Five tasks that take no time, in every cell.
PROGRAM = """
import asyncio
import dask
double = dask.delayed(lambda x: 2 * x)
five = [double(i) for i in range(5)]
"""


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InteractiveShell]:
    """A plain shell, as in a terminal; nothing of it stays in the process or on the disk."""
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    folder = str(tmp_path_factory.mktemp("ipython"))
    before = sys.excepthook, sys.displayhook
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("VIRTUAL_ENV", raising=False)  # of another environment than that of the tests
        made = InteractiveShell.instance(config=config, ipython_dir=folder)
    yield made
    made.restore_sys_module_state()
    made.atexit_operations()
    atexit.unregister(made.atexit_operations)
    InteractiveShell.clear_instance()
    sys.excepthook, sys.displayhook = before


@pytest.fixture
def cell(shell: InteractiveShell) -> Iterator[Cell]:
    """Runs a cell as IPython does, and gives what it came to and what it printed."""

    def run(text: str) -> Ran:
        with capture_output() as captured:
            result = shell.run_cell(text, store_history=True)
        return Ran(result, captured.stdout, captured.stderr)

    stageprof.load_ipython_extension(shell)
    assert run(PROGRAM).result.success
    yield run
    assert run("%reset -f").result.success
    stageprof.unload_ipython_extension(shell)
    assert Words.of(shell) is None
