"""What a region, a command or an export does where others move, end or are there already."""

from __future__ import annotations

import asyncio
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import dask
import pytest

import stageprof
from benchmarks.generate import generate
from stageprof.cli import main
from stageprof.private import make_folders
from stageprof.program import module
from stageprof.recording import Recording
from stageprof.renderers import findings, markdown, terminal
from stageprof_collectors.summary import Summary
from stageprof_runtime.compat import cloudpickle
from stageprof_runtime.errors import UsageError


def work() -> int:
    return int(dask.delayed(sum)([1, 2]).compute(scheduler="sync"))


@pytest.fixture
def made(tmp_path: Path) -> Path:
    path = tmp_path / "made.stageprof"
    generate(path, tasks=20)
    return path


# -- regions --------------------------------------------------------------------------------------


def test_a_program_that_goes_to_another_folder_keeps_its_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with stageprof.profile("relative.stageprof") as prof:
        work()
        os.chdir("elsewhere")
    assert len(prof.recording.tasks()) == 1
    assert prof.recording.path == str(tmp_path / "relative.stageprof")


@pytest.fixture
def gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder that we are in is gone."""
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()


@pytest.mark.usefixtures("gone")
def test_a_summary_is_shown_in_a_folder_that_is_gone(made: Path) -> None:
    recording = stageprof.open(made)
    assert str(made) in str(recording)


@pytest.mark.parametrize(
    "args", [("run", "made.py"), ("run", "-m", "json"), ("export", "--to", "csv")]
)
@pytest.mark.usefixtures("gone")
def test_a_command_in_a_folder_that_is_gone_says_so(
    args: tuple[str, ...], made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*args, *([str(made)] if args[0] == "export" else [])]) == 2
    error = capsys.readouterr().err
    assert error.startswith("stageprof: the folder that this was started in is gone; expected ")
    assert error.count("\n") == 1


def test_the_error_of_a_block_that_stopped_by_itself_is_the_users() -> None:
    prof = stageprof.profile()
    with pytest.raises(KeyError, match="mine"), prof:
        raise KeyError(prof.stop() and "mine")
    with prof:
        prof.stop()


def test_a_decorated_function_that_calls_itself_runs_and_says_what_has_no_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.stageprof"

    @stageprof.profile(path)
    def deep(n: int) -> int:
        return work() if n == 0 else deep(n - 1)

    with pytest.warns(UserWarning, match="in memory only"):
        assert deep(1) == 3
    assert deep(0) == 3
    assert len(stageprof.open(path).tasks()) == 1
    pickle.loads(cloudpickle.dumps(deep))  # as Dask sends it to workers


def test_a_decorated_function_is_sent_without_what_was_recorded() -> None:
    client = threading.Lock()  # neither can be pickled

    @stageprof.profile(client=client)
    def square(x: int) -> int:
        return x * x

    prof = stageprof.profile()
    sent = cloudpickle.dumps(square), pickle.dumps(prof)
    with prof:
        assert pickle.dumps(prof) == sent[1]
    assert (cloudpickle.dumps(square), pickle.dumps(prof)) == sent
    assert pickle.loads(sent[0])(3) == 9


def test_decorated_coroutines_run_beside_each_other(tmp_path: Path) -> None:
    @stageprof.profile(tmp_path / "x.stageprof")
    async def waits() -> int:
        await asyncio.sleep(0)
        return work()

    async def both() -> list[int]:
        return list(await asyncio.gather(waits(), waits()))

    with pytest.warns(UserWarning, match="in memory only"):
        assert asyncio.run(both()) == [3, 3]


# -- commands -------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["compare {0} {0} --json", "show {0}", "compare {0} {0}"])
def test_a_reader_that_closes_early_is_no_regression(made: Path, command: str) -> None:
    words = command.format(made).split()
    process = subprocess.Popen(
        [sys.executable, "-m", "stageprof", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (141, b"")


def test_what_the_children_of_a_checked_program_print_is_not_in_the_answer(
    capfd: pytest.CaptureFixture[str],
) -> None:
    source = "import os; os.system('echo from-child'); os.write(1, b'raw')"
    assert main(["check", "--json", "-c", source]) == 0
    out, err = capfd.readouterr()
    assert out.startswith("{")
    assert "from-child" in err
    assert "raw" in err


def test_a_module_is_found_as_python_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a finder that asks no path, too, as editable installs have."""
    from importlib.machinery import ModuleSpec

    class Finder:
        @staticmethod
        def find_spec(name: str, *_: object) -> ModuleSpec | None:
            return ModuleSpec(name, None) if name == "edited" else None

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    assert module("edited", []).name == "edited"
    with pytest.raises(UsageError, match="no_such"):
        module("no_such", [])


@pytest.mark.parametrize("face", [terminal.text, findings.text, markdown.text])
def test_a_path_in_the_facts_does_nothing_to_a_terminal(
    made: Path, face: Callable[[Summary], str]
) -> None:
    hostile = ("measured in e\x1b]0;pwned\x07\x1b[31mvil.stageprof",)
    shown = face(replace(stageprof.open(made).summary, facts=hostile))
    assert "measured" in shown
    assert "\x1b" not in shown


def test_a_rule_that_is_off_is_off_in_the_report_of_a_run(made: Path, tmp_path: Path) -> None:
    recording = Recording.open(made)
    rules = {finding.rule for finding in recording.findings()}
    assert rules
    recording.report(tmp_path / "on.html")
    recording.report(tmp_path / "off.html", {"rules": dict.fromkeys(rules, False)})
    on, off = ((tmp_path / f"{name}.html").read_text() for name in ("on", "off"))
    shown = [rule for rule in rules if f"What {rule} means" in on]
    assert shown
    assert not [rule for rule in shown if f"What {rule} means" in off]


# -- what is there already ------------------------------------------------------------------------


def test_a_folder_of_other_tables_is_not_replaced(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    (folder / "orders.parquet").mkdir(parents=True)
    (folder / "customers.csv").write_text("mine")
    words = ["export", str(made), "--to", "csv", "-o", str(folder), "--force"]
    assert main(words) == 2
    assert (folder / "customers.csv").read_text() == "mine"


def test_a_report_replaces_a_page_and_nothing_else(made: Path, tmp_path: Path) -> None:
    victim, page = tmp_path / "victim.py", tmp_path / "page.html"
    victim.write_text("mine")
    with pytest.raises(UsageError, match="exists"):
        Recording.open(made).report(victim)
    assert victim.read_text() == "mine"
    for _ in range(2):
        Recording.open(made).report(page)
    assert page.read_text().lower().startswith("<!doctype html")


def test_a_report_is_made_twice_of_a_recording_that_has_gone(made: Path, tmp_path: Path) -> None:
    recording = Recording.open(made)
    made.unlink()
    for _ in range(2):
        recording.report(tmp_path / "page.html")


def test_a_comparison_is_never_written_over_a_recording(made: Path, tmp_path: Path) -> None:
    third = tmp_path / "third.stageprof"
    third.write_bytes(made.read_bytes())
    assert main(["compare", str(made), str(made), f"--json={third}"]) == 2
    assert third.read_bytes() == made.read_bytes()


def test_a_pipe_is_written_to_and_never_read(made: Path) -> None:
    """As bash gives for `--json=>(...)`: to read its beginning would wait for ever."""
    end, pipe = os.pipe()
    with os.fdopen(end) as reader:
        assert main(["compare", str(made), str(made), f"--json=/dev/fd/{pipe}"]) == 0
        os.close(pipe)
        assert reader.read().startswith("{")


def test_reports_that_are_written_at_once_do_not_take_each_others_place(
    made: Path, tmp_path: Path
) -> None:
    """Nor leave Panel where it takes the styles of later pages from elsewhere."""
    resources = pytest.importorskip("panel.io.resources")
    before = resources.RESOURCE_MODE
    recordings = [Recording.open(made) for _ in range(3)]
    wrong: list[Exception] = []

    def report(recording: Recording) -> None:
        try:
            recording.report(tmp_path / "page.html")
        except Exception as error:
            wrong.append(error)

    recordings[0].report(tmp_path / "page.html")
    threads = [threading.Thread(target=report, args=(each,)) for each in recordings]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert [path.name for path in tmp_path.iterdir() if "part" in path.name] == []
    assert before == resources.RESOURCE_MODE


def test_folders_are_made_for_their_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        make_folders(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert [(tmp_path / p).stat().st_mode & 0o777 for p in ("a", "a/b")] == [0o700, 0o700]
