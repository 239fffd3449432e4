"""`%stageprof` and `%%stageprof` in a shell: the cell works as before, and is recorded."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("IPython")

from IPython.core.interactiveshell import InteractiveShell

import stageprof
from notebook.conftest import Cell
from stageprof.magic.running import Running
from stageprof.magic.words import Words
from stageprof_collectors.comparison.circumstances import program
from stageprof_collectors.findings.settings import Settings


def last(shell: InteractiveShell) -> stageprof.Recording:
    recording = shell.run_line_magic("stageprof", "last")
    assert isinstance(recording, stageprof.Recording)
    return recording


def computed(recording: stageprof.Recording) -> int:
    return len(recording.computations())


# -- the cell -----------------------------------------------------------------------------------


def test_a_cell_keeps_its_variables_and_its_value(cell: Cell, shell: InteractiveShell) -> None:
    ran = cell("%%stageprof\nsums = dask.compute(*five, scheduler='sync')\nsum(sums)")

    assert ran.value == 20
    assert shell.user_ns["sums"] == (0, 2, 4, 6, 8)
    assert shell.user_ns["_"] == 20
    assert computed(last(shell)) == 1


def test_a_plain_shell_gets_the_summary_printed(cell: Cell) -> None:
    ran = cell("%%stageprof\ndask.compute(*five, scheduler='sync')")

    assert ran.err == ""
    assert re.match(r"stageprof  In \[\d+\]\n", ran.out)
    assert "5 tasks in 1 computation" in ran.out
    assert ran.out.index("Where the time went") < ran.out.index("(0, 2, 4, 6, 8)")
    assert "\x1b" not in ran.out.split("Out[")[0]


def test_a_block_in_a_cell_is_called_by_the_cell_and_its_line(
    cell: Cell, shell: InteractiveShell
) -> None:
    """Not by the file that IPython made of it; and of two runs of a cell it is the same program."""
    source = "import stageprof\nwith stageprof.profile() as region: pass"
    labels = []
    for _ in range(2):
        cell(source)
        labels.append(shell.user_ns["region"].recording.store.header)
    first, second = labels
    assert re.fullmatch(r"Block at In \[\d+\]:2", first["label"])
    assert first["label"] != second["label"]
    assert program(first) == program(second)


def test_quiet_shows_the_value_and_nothing_else(cell: Cell) -> None:
    assert re.fullmatch(r"Out\[\d+\]: 4\n+", cell("%%stageprof -q\n2 + 2").out)


@pytest.mark.parametrize("text", ["%%stageprof -q\n2 + 2;", "%stageprof -q 2 + 2;"])
def test_a_semicolon_keeps_the_value_from_being_shown(cell: Cell, text: str) -> None:
    ran = cell(text)
    assert (ran.out, ran.value) == ("", None)


def test_a_line_has_the_value_of_its_expression(cell: Cell, shell: InteractiveShell) -> None:
    assert cell("%stageprof -q sum(dask.compute(*five, scheduler='sync'))").value == 20
    cell("total = %stageprof -q sum(dask.compute(*five, scheduler='sync'))")
    assert shell.user_ns["total"] == 20
    assert computed(last(shell)) == 1


def test_a_line_may_be_a_statement(cell: Cell, shell: InteractiveShell) -> None:
    assert cell("%stageprof -q doubled = five[2].compute(scheduler='sync')").value is None
    assert shell.user_ns["doubled"] == 4


def test_a_line_in_a_function_sees_its_variables(cell: Cell) -> None:
    ran = cell(
        "def f(inner):\n    return get_ipython().run_line_magic('stageprof', '-q inner + 1')"
    )
    assert ran.result.success
    assert cell("f(41)").value == 42


def test_braces_and_dollars_are_left_alone(cell: Cell) -> None:
    assert cell("%stageprof -q '{five} $five'").value == "{five} $five"


def test_a_cell_may_hold_other_magics(cell: Cell) -> None:
    assert "hello" in cell("%%stageprof -q\n%lsmagic\n!echo hello").out


def test_a_cell_that_is_one_line_in_time_works(cell: Cell, shell: InteractiveShell) -> None:
    ran = cell("%%time\n%%stageprof -q\ndask.compute(*five, scheduler='sync')")
    assert ran.result.success
    assert computed(last(shell)) == 1


# -- await --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "%%stageprof -q\nx = await asyncio.sleep(0.001, 3)\nx + 4",
        "%%stageprof -q\nx = 3\nx + await asyncio.sleep(0.001, 4)",
        "%stageprof -q await asyncio.sleep(0.001, 7)",
        "y = %stageprof -q await asyncio.sleep(0.001, 7)\ny",
        "y = {}\ny['a b'] = %stageprof -q await asyncio.sleep(0.001, 7)\ny['a b']",
        "for i in range(2):\n    y = %stageprof -q await asyncio.sleep(0.001, 7)\ny",
    ],
)
def test_await_works(cell: Cell, shell: InteractiveShell, text: str) -> None:
    assert cell(text).value == 7
    assert last(shell).wall >= 0.001


def test_a_coroutine_that_is_not_awaited_is_a_value_like_any(cell: Cell) -> None:
    ran = cell("%%stageprof -q\nasync def f():\n    await asyncio.sleep(0)\nf()")
    assert asyncio.run(ran.value) is None


# -- errors -------------------------------------------------------------------------------------

FAILS = "%%stageprof\ndef f():\n    return 1 / 0\ndask.compute(*five, scheduler='sync')\nf()"


def test_an_error_keeps_its_traceback_without_frames_of_ours(cell: Cell) -> None:
    ran = cell(FAILS)

    assert isinstance(ran.result.error_in_exec, ZeroDivisionError)
    assert not hasattr(ran.result.error_in_exec, "_render_traceback_")
    shown = ran.out[ran.out.index("ZeroDivisionError") :]
    assert re.search(r"Cell In\[\d+\], line 5\n", shown)
    assert re.search(r"Cell In\[\d+\], line 3, in f\(\)", shown)
    assert "5 f()" in shown
    for ours in ("run_cell_magic", "hidden", "words.py", "cell.py", "interactiveshell"):
        assert ours not in shown


def test_lines_are_counted_from_the_top_of_the_cell(cell: Cell) -> None:
    assert re.search(r"Cell In\[\d+\], line 4\n", cell("%%stageprof -q\n\n  \n1 / 0").out)


def test_what_was_recorded_until_an_error_stays(cell: Cell, shell: InteractiveShell) -> None:
    ran = cell(FAILS)
    assert "5 tasks in 1 computation" in ran.out
    assert computed(last(shell)) == 1
    assert last(shell).failures.said == ("the cell ended with ZeroDivisionError",)


def test_an_interrupt_is_an_error_like_any(cell: Cell, shell: InteractiveShell) -> None:
    ran = cell("%%stageprof -q\ndask.compute(*five, scheduler='sync')\nraise KeyboardInterrupt")
    assert isinstance(ran.result.error_in_exec, KeyboardInterrupt)
    assert computed(last(shell)) == 1
    assert last(shell).failures.said == ("the cell was interrupted (Ctrl-C)",)


def test_a_cell_may_end_with_what_no_coroutine_can_raise(
    cell: Cell, shell: InteractiveShell
) -> None:
    ran = cell("%%stageprof -q\nnext(iter([]))")
    assert type(ran.result.error_in_exec) is StopIteration
    assert "words.py" not in ran.out
    assert last(shell).failures.said == ("the cell ended with StopIteration",)


def test_an_error_that_cannot_be_written_to_is_itself(cell: Cell) -> None:
    frozen = (
        "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass E(Exception):\n    n: int"
    )
    ran = cell(f"%%stageprof -q\n{frozen}\nraise E(3)")
    assert type(ran.result.error_in_exec).__name__ == "E"


def test_each_of_several_recordings_is_where_the_first_is(
    cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cell changes the folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").mkdir()
    text = "%%stageprof -q -o run.stageprof --repeat 2\nimport os"
    cell(f"{text}\nif os.path.exists('x'):\n    os.chdir('x')")
    assert sorted(path.name for path in tmp_path.glob("*.stageprof")) == [
        "run-1.stageprof", "run-2.stageprof",
    ]  # fmt: skip


def test_in_an_embedded_shell_variables_stay_those_of_the_function() -> None:
    shell: Any = SimpleNamespace(user_ns={}, user_global_ns={})
    code: Any = None
    running = Running(shell, code, None, code)
    assert running._local is shell.user_ns
    assert running._names is shell.user_global_ns


def test_an_error_while_awaiting_is_shown_in_the_same_way(cell: Cell) -> None:
    ran = cell("%%stageprof -q\nawait asyncio.sleep(0)\n1 / 0")
    assert isinstance(ran.result.error_in_exec, ZeroDivisionError)
    assert re.search(r"Cell In\[\d+\], line 3\n", ran.out)
    assert "words.py" not in ran.out


def test_code_that_is_no_python_is_said_so_as_of_any_cell(cell: Cell) -> None:
    ran = cell("%%stageprof\nx = 1\ndef f(:\n    pass")
    assert isinstance(ran.result.error_before_exec, SyntaxError)
    assert re.search(r"Cell In\[\d+\], line 3\n", ran.out)
    assert "stageprof/" not in ran.out


@pytest.mark.parametrize(
    "text",
    [
        "%stageprof --bad 1",
        "%%stageprof --repeat x\n1",
        "%%stageprof five\n1",
        "%stageprof",
        "%stageprof off",
        "%stageprof last -q",
        "%%stageprof -o /no/such/folder/x.stageprof\n1",
        "%%stageprof --rule no-such-rule=off\n1",
    ],
)
def test_a_request_that_makes_no_sense_gets_one_line(cell: Cell, text: str) -> None:
    ran = cell(text)
    assert not ran.result.success
    assert ran.out == ""
    assert ran.err.startswith("UsageError: ")
    assert ran.err.count("\n") == 1


def test_an_error_of_stageprof_within_the_code_is_the_codes_own(cell: Cell) -> None:
    ran = cell("%%stageprof -q\nimport stageprof\nstageprof.open('no such file')")
    assert isinstance(ran.result.error_in_exec, stageprof.StageprofError)


# -- options ------------------------------------------------------------------------------------


def test_a_file_a_name_and_a_report(
    cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: list[tuple[str, str]] = []

    def report(self: stageprof.Recording, path: str, settings: Settings) -> None:
        assert "tiny-tasks" in settings.off
        reports.append((self.summary.label, path))

    monkeypatch.setattr(stageprof.Recording, "report", report)
    monkeypatch.chdir(tmp_path)
    ran = cell(
        "%%stageprof -o a.stageprof --name 'my cell' --rule tiny-tasks=off --report r.html\n1"
    )

    assert stageprof.open("a.stageprof").summary.label == "my cell"
    assert reports == [("my cell", str(tmp_path / "r.html"))]
    assert ran.out.startswith("stageprof  my cell")
    assert f"stageprof app {tmp_path / 'a.stageprof'}" in ran.out


def test_repeated_runs_are_each_recorded_and_the_middle_one_is_shown(
    cell: Cell, shell: InteractiveShell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = cell("n = 0")
    ran = cell("%%stageprof --repeat 3 -o a.stageprof\nn += 1\nn")

    assert ran.value == 3
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"a-{i}.stageprof" for i in (1, 2, 3)]
    walls = sorted(stageprof.open(path).wall for path in tmp_path.iterdir())
    assert last(shell).wall == walls[1]
    assert "3 runs: " in ran.out


@pytest.mark.parametrize("option", ["--gil", "--no-gil"])
def test_the_gil_is_watched_unless_it_is_not_wanted(
    cell: Cell, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    module = sys.modules["stageprof.profile"]
    seen: list[bool] = []
    session = module.Session

    def watched(*args: Any, watch_gil: bool, native: bool, cost: dict[str, list[int]]) -> Any:
        seen.append(watch_gil)
        assert not native
        return session(*args, watch_gil=watch_gil, cost=cost)

    monkeypatch.setattr(module, "Session", watched)
    assert cell(f"%stageprof -q {option} 1").value == 1
    assert seen == [option == "--gil"]


def test_deterministic_counts_calls(cell: Cell, shell: InteractiveShell) -> None:
    cell("def called():\n    return 1")
    cell("%%stageprof -q --deterministic\n[called() for _ in range(9)]")
    assert any("called" in text for text in last(shell).store.strings)


def test_check_computes_nothing(cell: Cell, shell: InteractiveShell) -> None:
    """What was handed to Dask is looked at, or else the value."""
    cell("before = %stageprof -q 1")
    was = last(shell)
    one = cell("%%stageprof --check\na = 1\nb = dask.compute(*five)\nc = 2")
    two = cell("%stageprof --check five")

    assert isinstance(one.value, stageprof.Checked)
    assert "1 graph, about 5 tasks" in one.out
    assert "1 graph, about 5 tasks" in two.out
    assert shell.user_ns["a"] == 1
    assert "b" not in shell.user_ns
    assert "c" not in shell.user_ns
    assert last(shell) is was


def test_help_is_that_of_the_options(cell: Cell, shell: InteractiveShell) -> None:
    assert "--no-gil" in cell("%stageprof --help").out
    assert "--no-gil" in (shell.find_line_magic("stageprof").__doc__ or "")
    assert cell("%stageprof -h").result.success


# -- across cells -------------------------------------------------------------------------------


def test_on_and_off_record_across_cells(cell: Cell, shell: InteractiveShell) -> None:
    cell("%stageprof on --name both")
    cell("dask.compute(*five, scheduler='sync')")
    again = cell("%stageprof on")
    cell("dask.compute(*five[:2], scheduler='sync')")
    off = cell("%stageprof off")

    assert again.err.startswith("UsageError: recording is on already")
    assert off.value is last(shell)
    assert off.out.count("Where the time went") == 1
    assert "stageprof  both" in off.out
    assert len(last(shell).tasks()) == 7


def test_unloading_ends_a_recording_that_is_on(cell: Cell, shell: InteractiveShell) -> None:
    cell("%stageprof on")
    stageprof.unload_ipython_extension(shell)
    assert Words.of(shell) is None
    assert cell("%stageprof 1").err.startswith("UsageError: Line magic function")
    assert not [f for f in shell.input_transformers_post if f.__module__.startswith("stageprof")]
    stageprof.load_ipython_extension(shell)
    stageprof.load_ipython_extension(shell)
    assert cell("%stageprof -q 1").value == 1


def test_before_anything_was_recorded_there_is_no_last_one(cell: Cell) -> None:
    assert "nothing was recorded yet" in cell("%stageprof last").err
    assert "0 recorded" in cell("%stageprof compare").err


def test_compare_sets_the_last_two_beside_each_other(cell: Cell) -> None:
    cell("%stageprof -q --name one dask.compute(*five, scheduler='sync')")
    cell("%stageprof -q --name two dask.compute(*five[:3], scheduler='sync')")
    ran = cell("%stageprof compare")
    assert ran.result.success
    assert type(ran.value).__name__ == "Comparison"
    assert "tasks" in str(ran.value)
    assert "conditions differ" not in str(ran.value)


# -- where it was -------------------------------------------------------------------------------


def test_lines_of_cells_are_called_what_the_user_calls_them(
    cell: Cell, shell: InteractiveShell
) -> None:
    made = cell("def work():\n    return dask.compute(*five, scheduler='sync')")
    ran = cell("%%stageprof -q\nwork()\n\ndask.compute(*five[:2], scheduler='sync')")
    one, two = (f"In [{r.result.execution_count}]" for r in (made, ran))

    found = last(shell).computations()
    assert list(zip(found["file"], found["line"], strict=True)) == [(one, 2), (two, 4)]
    assert not [text for text in last(shell).store.strings if "ipython-input" in text]


def test_nothing_is_told_of_cells_where_there_is_no_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    from stageprof_runtime import cells

    monkeypatch.setitem(sys.modules, "IPython", None)
    assert cells.numbers() == {}


def test_cells_get_their_names_and_only_they() -> None:
    from stageprof_collectors.tables.cells import rename

    cell = "/tmp/ipykernel_7/12.py"
    texts = [f"{cell}:3", f"{cell}:3 f", "etl.py:3", cell]
    rename(texts, [f"4 {cell}", "x /tmp/ipykernel_7", "5 short", ""])
    assert texts == ["In [4]:3", "In [4]:3 f", "etl.py:3", "In [4]"]
