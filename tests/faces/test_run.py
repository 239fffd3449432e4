"""`stageprof run` changes nothing of the program: arguments, output, status, processes."""

from __future__ import annotations

import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from distributed import Client

import stageprof
from clusters import scheduler_of, separate
from stageprof.cli import main

Command = Callable[..., "subprocess.CompletedProcess[str]"]

COMPUTE = """
import sys, time, dask
def slow(x):
    time.sleep(0.01)
    return x + 1
def work(**options):
    return dask.compute(*[dask.delayed(slow)(i) for i in range(5)], **options)
"""

ON_PROCESSES = (
    COMPUTE
    + """
def main():
    from distributed import Client, LocalCluster
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with Client(cluster):
            print(work())
if __name__ == "__main__":
    main()
"""
)

SPAWN = """
import multiprocessing as mp, os, sys
def child(queue):
    queue.put((__name__, os.path.basename(__file__), sys.argv[1:]))
if __name__ == "__main__":
    context = mp.get_context(sys.argv[1])
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    print(queue.get(timeout=20), flush=True)
    process.join()
"""

FACTS = """
import sys, __main__
print(sys.argv)
print(repr(sys.path[0]))
print(__name__, __package__, __spec__ and __spec__.name)
print(getattr(__main__, "__file__", None), __main__.__dict__ is globals())
print(sorted(name for name in globals() if name != "__warningregistry__"))
print(compile("x: int", "", "exec", dont_inherit=False).co_flags)
"""


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], str]:
    """Writes a script into the test's folder; its name."""

    def write(text: str) -> str:
        (tmp_path / "script.py").write_text(text)
        return "script.py"

    return write


Script = Callable[[str], str]


def tasks_in(path: Path) -> int:
    recording = stageprof.open(path)
    assert recording.complete
    return len(recording.tasks())


def started(folder: Path, *args: str) -> subprocess.Popen[str]:
    """`stageprof` running until its program prints "ready"."""
    process = subprocess.Popen(
        [sys.executable, "-m", "stageprof", *args],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_script_is_recorded_and_its_output_is_its_own(
    command: Command, script: Script, tmp_path: Path
) -> None:
    done = command("run", script(COMPUTE + "print(work(scheduler='threads'))"))

    assert done.returncode == 0
    assert done.stdout == "(1, 2, 3, 4, 5)\n"
    assert done.stderr.startswith("stageprof  script.py\n")
    assert "\x1b" not in done.stderr
    assert tasks_in(tmp_path / "script.stageprof") == 5
    assert stageprof.open(tmp_path / "script.stageprof").store.header["whole"] is True


def test_the_program_may_follow_two_dashes(
    command: Command, script: Script, tmp_path: Path
) -> None:
    name = script(f"{COMPUTE}\nprint(sys.argv[1:])\nwork(scheduler='sync')\n")
    done = command("run", "-q", "--", name, "-o", "--", "x")
    assert (done.returncode, done.stdout) == (0, "['-o', '--', 'x']\n"), done.stderr
    assert tasks_in(tmp_path / "script.stageprof") == 5


@pytest.mark.parametrize("program", [("-c", "import sys; print(sys.argv[1:])"), ("-m", "echoing")])
def test_two_dashes_after_a_text_or_a_module_are_the_programs_own(
    command: Command, tmp_path: Path, program: tuple[str, str]
) -> None:
    (tmp_path / "echoing.py").write_text("import sys; print(sys.argv[1:])")
    done = command("run", "-q", *program, "--", "x", "-y")
    assert (done.returncode, done.stdout) == (0, "['--', 'x', '-y']\n"), done.stderr


@pytest.mark.cluster
def test_script_that_makes_a_cluster_of_processes_runs(
    command: Command, script: Script, tmp_path: Path
) -> None:
    done = command("run", "-o", "out", script(ON_PROCESSES))

    assert done.stdout == "(1, 2, 3, 4, 5)\n"
    assert done.returncode == 0
    recording = stageprof.open(tmp_path / "out")
    assert len(recording.tasks()) == 5
    assert recording.coverage()["instrumented"] == 2
    layers = recording.layers()
    assert set(layers["line"][layers["tasks"] > 0]) == {7}


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_child_processes_find_the_main_module(
    method: str, command: Command, script: Script
) -> None:
    done = command("run", "--no-summary", script(SPAWN), method)
    name = "__main__" if method == "fork" else "__mp_main__"
    assert done.stdout == f"('{name}', 'script.py', ['{method}'])\n"
    assert done.returncode == 0


@pytest.mark.parametrize(
    "args",
    [
        ("script.py", "-o", "mine", "--json", "-c", "--"),
        ("folder/script.py",),
        ("../{here}/script.py", "x"),
        ("folder", "y"),
        ("-m", "script", "-o", "mine"),
        ("-m", "package"),
        ("-m", "package.sub", "--help"),
        ("-c", FACTS, "-m", "a"),
    ],
    ids=lambda args: " ".join(args[:2])[:20].strip(),
)
def test_program_sees_what_python_would_have_shown_it(
    args: tuple[str, ...], command: Command, tmp_path: Path
) -> None:
    for name in ("script", "folder/script", "folder/__main__", "package/__main__", "package/sub"):
        file = tmp_path / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(FACTS)
    (tmp_path / "package" / "__init__.py").touch()
    args = tuple(arg.format(here=tmp_path.name) if "{here}" in arg else arg for arg in args)

    plain = subprocess.run(
        [sys.executable, *args], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    done = command("run", "-o", "out", "--no-summary", *args)
    assert done.stdout == plain.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("statement", "status", "err"),
    [
        ("sys.exit()", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("sys.exit('bye')", 1, "bye\n"),
        ("raise SystemExit(True)", 1, ""),
    ],
)
def test_exit_status_is_kept(
    statement: str, status: int, err: str, command: Command, script: Script, tmp_path: Path
) -> None:
    done = command("run", "--no-summary", script(f"{COMPUTE}\nwork(scheduler='sync')\n{statement}"))
    assert (done.returncode, done.stderr) == (status, err)
    assert tasks_in(tmp_path / "script.stageprof") == 5


@pytest.mark.parametrize(
    "text",
    [
        "1 / 0\n",
        "try:\n    {}['x']\nexcept KeyError as e:\n    raise OSError from e\n",
        "x = (\n",
        "import no_such_module\n",
        "import sys\nsys.excepthook = lambda *a: print('mine', file=sys.stderr)\n1 / 0\n",
        "import sys\nsys.excepthook = lambda *a: sys.exit(3)\n1 / 0\n",
    ],
)
def test_exception_is_shown_as_python_shows_it(
    text: str, command: Command, script: Script, tmp_path: Path
) -> None:
    name = script(text)
    plain = subprocess.run(
        [sys.executable, name], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    done = command("run", "--no-summary", name)
    assert done.stderr == plain.stderr
    assert done.returncode == plain.returncode
    assert stageprof.open(tmp_path / "script.stageprof").complete


def test_an_excepthook_that_fails_or_exits_costs_no_summary(
    command: Command, script: Script
) -> None:
    """It was taken for a defect of stageprof's, or the summary was left out in silence."""
    for hook, status, said in (("1 + ''", 1, "Error in sys.excepthook"), ("sys.exit(3)", 3, "")):
        text = f"import sys\ndef hook(*_):\n    {hook}\nsys.excepthook = hook\n1 / 0\n"
        done = command("run", script(text))
        assert done.returncode == status
        assert said in done.stderr
        assert ("ZeroDivisionError: division" in done.stderr) == bool(said)
        assert "Where the time went" in done.stderr


def test_traceback_of_a_failed_task_has_no_frame_of_ours(
    command: Command, script: Script, tmp_path: Path
) -> None:
    text = "import dask\ndask.delayed(lambda: 1 / 0)().compute(scheduler='threads')\n"
    done = command("run", script(text))

    trace, _, summary = done.stderr.partition("\nstageprof  script.py\n")
    assert trace.endswith("ZeroDivisionError: division by zero")
    assert "stageprof" not in re.sub(re.escape(str(tmp_path)), "", trace)
    assert "Where the time went" in summary
    assert tasks_in(tmp_path / "script.stageprof") == 1


def test_interrupt_keeps_the_recording_and_gives_status_130(tmp_path: Path, script: Script) -> None:
    text = f"{COMPUTE}\nwork(scheduler='sync')\nprint('ready', flush=True)\ntime.sleep(60)\n"
    process = started(tmp_path, "run", script(text))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)

    assert process.returncode == 130
    assert "KeyboardInterrupt" in err
    assert "Where the time went" in err
    assert tasks_in(tmp_path / "script.stageprof") == 5


def test_killed_run_leaves_a_recording_that_says_it_is_incomplete(
    tmp_path: Path, script: Script, command: Command
) -> None:
    # What was emitted is in the file after a tenth of a second.
    text = f"{COMPUTE}\nwork(scheduler='sync')\ntime.sleep(1)\nprint('ready', flush=True)\n"
    process = started(tmp_path, "run", script(text + "time.sleep(60)\n"))
    process.kill()
    process.communicate(timeout=20)
    done = command("show", "script.stageprof")

    assert process.returncode == -signal.SIGKILL
    assert done.returncode == 0
    assert "recording incomplete: " in done.stdout
    assert "5 tasks in 1 computation" in done.stdout


@pytest.mark.parametrize("output", ["no/such/folder/x", "script.py", ".", "/proc/x"])
def test_output_that_cannot_be_written_stops_before_the_script(
    output: str, command: Command, script: Script
) -> None:
    done = command("run", "-o", output, script("print('it ran')"))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("stageprof: ")


def test_forked_child_leaves_recording_and_summary_to_its_parent(
    command: Command, script: Script, tmp_path: Path
) -> None:
    text = f"{COMPUTE}\nimport os\nif os.fork():\n    os.wait()\n    work(scheduler='sync')\n"
    done = command("run", script(text + "sys.exit(5)"))
    assert done.returncode == 5
    assert done.stderr.count("Where the time went") == 1
    assert tasks_in(tmp_path / "script.stageprof") == 5


def test_folder_changed_by_the_program_does_not_move_the_recording(
    command: Command, script: Script, tmp_path: Path
) -> None:
    done = command("run", script("import os\nos.chdir('/')"))
    assert done.returncode == 0
    assert (tmp_path / "script.stageprof").exists()
    # Nor is what is to be typed next, in the shell's folder, another one.
    assert f"stageprof show --findings {tmp_path / 'script.stageprof'}" in done.stderr


def test_a_slip_of_the_name_leaves_the_last_recording(
    command: Command, script: Script, tmp_path: Path
) -> None:
    """`-m script.py` began to record into its file before it was looked for."""
    name = script("1")
    assert command("run", "-q", name).returncode == 0
    before = (tmp_path / "script.stageprof").read_bytes()
    done = command("run", "-m", name)
    assert done.returncode == 2
    assert "leave out -m" in done.stderr
    assert (tmp_path / "script.stageprof").read_bytes() == before


def test_a_program_that_is_a_folder_has_its_name(command: Command, tmp_path: Path) -> None:
    (tmp_path / "__main__.py").write_text("1")
    done = command("run", ".")
    assert f"stageprof  {tmp_path.name}" in done.stderr
    assert (tmp_path / f"{tmp_path.name}.stageprof").exists()


@pytest.mark.parametrize("closed", ["2>&-", ">&-"])
def test_a_closed_stream_costs_neither_run_nor_status(
    closed: str, script: Script, tmp_path: Path
) -> None:
    name = script("open('ran', 'w').close()\nraise SystemExit(7)")
    words = f"{shlex.quote(sys.executable)} -m stageprof run {name} {closed}"
    done = subprocess.run(words, shell=True, cwd=tmp_path, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 7
    assert (tmp_path / "ran").exists()
    assert stageprof.open(tmp_path / "script.stageprof").complete


def test_what_the_program_set_is_put_back_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.chdir(tmp_path)
    path, argv = [*sys.path], [*sys.argv]
    for text in ("import sys; sys.path.append('x'); sys.argv.clear()", "1 / 0"):
        Path("script.py").write_text(text)
        main(["run", "-q", "-o", "out", "script.py", "a"])
        assert (sys.path, sys.argv) == (path, argv)
        main(["check", "script.py", "a"])
        assert (sys.path, sys.argv) == (path, argv)


@pytest.mark.parametrize(
    "later",
    [
        "import atexit; atexit.register(late)",
        "import threading as t; t.Thread(target=lambda: t.main_thread().join() or late()).start()",
        "sys.excepthook = lambda *_: late(); 1 / 0",
    ],
    ids=["at exit", "in a thread", "for an error"],
)
def test_what_outlives_the_program_finds_its_own(
    later: str, command: Command, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "beside.py").write_text("import sys\nprint('found', sys.argv[1:])\n")
    (folder / "script.py").write_text(f"import sys\ndef late():\n    import beside\n{later}\n")
    done = command("run", "-q", "folder/script.py", "a")

    assert (done.stdout, done.stderr) == ("found ['a']\n", "")


def test_no_summary_means_silence(command: Command, script: Script) -> None:
    done = command("run", "--no-summary", script(""))
    assert (done.stdout, done.stderr) == ("", "")


def on_terminal(folder: Path, *args: str, **environment: str) -> bytes:
    """What a terminal of 80 x 24 is sent."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execve(
            sys.executable,
            [sys.executable, "-m", "stageprof", *args],
            {**os.environ, "TERM": "xterm", "LINES": "24", "COLUMNS": "80", **environment},
        )
    import fcntl
    import struct
    import termios

    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    parts = []
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the child has gone
            break
        if not part:
            break
        parts.append(part)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return b"".join(parts)


def test_terminal_shows_a_live_line_in_its_last_row_and_gets_it_back(
    script: Script, tmp_path: Path
) -> None:
    text = (
        "import time\nfor i in range(10):\n    print('line', i, flush=True)\n    time.sleep(0.1)\n"
    )
    sent = on_terminal(tmp_path, "run", script(text))

    assert b"\x1b[1;23r" in sent
    row, coloured = rb"\x1b\[24;1H\x1b\[2K", rb"\x1b\[48;2;\d+;\d+;\d+m \x1b\[0m"
    assert re.search(row + coloured + rb" stageprof  outside ", sent)
    assert sent.rindex(b"\x1b[r") > sent.rindex(b"\x1b[1;23r")
    assert b"Where the time went" in sent


def test_live_line_leaves_the_program_amid_its_line(script: Script, tmp_path: Path) -> None:
    text = "import time\nfor i in range(10):\n    print('line', i)\n    time.sleep(0.1)\n"
    sent = on_terminal(tmp_path, "run", "-q", script(text), PYTHONUNBUFFERED="1")

    in_place = re.sub(rb"\x1bD\x1b\[1A|\x1b7.*?\x1b8", b"", sent)
    assert in_place.startswith(b"".join(b"line %d\r\n" % i for i in range(10)))


def test_no_color_is_respected(script: Script, tmp_path: Path) -> None:
    sent = on_terminal(tmp_path, "run", "--no-live", script(""), NO_COLOR="1")
    assert not re.search(rb"\x1b\[[\d;]*3[0-8]", sent)


@pytest.mark.cluster
def test_attach_records_a_cluster_from_outside(tmp_path: Path, command: Command) -> None:
    with separate(workers=1) as client:
        address = scheduler_of(client)
        process = subprocess.Popen(
            [sys.executable, "-m", "stageprof", "attach", address, "-o", "out", "--for", "60s"],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        assert process.stderr.readline().startswith(f"stageprof: recording {address}")
        _work(client)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)

    assert process.returncode == 0
    assert "Where the time went" in err
    recording = stageprof.open(tmp_path / "out")
    assert recording.complete
    assert len(recording.tasks()) == 5
    assert recording.coverage()["instrumented"] == 1


def _work(client: Client) -> None:
    client.gather(client.map(lambda x: x + 1, range(5)))


def test_no_gil_watches_nobody(tmp_path: Path) -> None:
    """Nor does the program have a process beside it."""
    children = (
        "import psutil, threading; threading.Event().wait(0.5); "
        "print(len(psutil.Process().children()))"
    )
    seen = {}
    for option in ("--gil", "--no-gil"):
        path = tmp_path / f"{option}.stageprof"
        command = ["run", option, "-q", "-o", str(path), "-c", children]
        done = subprocess.run(
            [sys.executable, "-m", "stageprof", *command],
            capture_output=True,
            text=True,
            check=True,
        )
        seen[option] = done.stdout.strip(), len(stageprof.open(path).timeline.gil.sources)
    assert seen == {"--gil": ("1", 1), "--no-gil": ("0", 0)}
