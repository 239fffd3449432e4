"""The command line: statuses, and one line for whatever is wrong."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import stageprof
from faces.conftest import record
from stageprof.attach import warning
from stageprof.cli import main
from stageprof.commands import COMMANDS
from stageprof.commands.attach import Duration
from stageprof_collectors.storage import frame

Capture = pytest.CaptureFixture[str]
Command = Callable[..., "subprocess.CompletedProcess[str]"]

#: Commands that read a recording, with what they need beside it.
READERS = (("show",), ("show", "--json"), ("show", "--markdown"), ("inspect",), ("export",))


Spoil = Callable[[Path, bytes], None]


def _text(path: Path, good: bytes) -> None:
    path.write_text("hello, this is a text\n")


def _empty(path: Path, good: bytes) -> None:
    path.touch()


def _garbage(path: Path, good: bytes) -> None:
    path.write_bytes(bytes(range(256)) * 40)


def _zip(path: Path, good: bytes) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a", good)


def _half_head(path: Path, good: bytes) -> None:
    path.write_bytes(good[:10])


def _head_alone(path: Path, good: bytes) -> None:
    path.write_bytes(good[:16])


def _newer(path: Path, good: bytes) -> None:
    path.write_bytes(good[:8] + bytes([99]) + good[9:])


def _broken_meta(path: Path, good: bytes) -> None:
    path.write_bytes(good[:40] + b"\xff" * 20 + good[60:])


def _no_batch(path: Path, good: bytes) -> None:
    path.write_bytes(good[: len(good) // 2])


def _folder(path: Path, good: bytes) -> None:
    path.mkdir()


def _missing(path: Path, good: bytes) -> None:
    pass


def _dangling(path: Path, good: bytes) -> None:
    path.symlink_to("nowhere")


def _pipe(path: Path, good: bytes) -> None:
    os.mkfifo(path)


def _secret(path: Path, good: bytes) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    path.write_bytes(good)
    path.chmod(0)


BAD = (
    _text, _empty, _garbage, _zip, _half_head, _head_alone, _newer, _broken_meta, _no_batch,
    _folder, _missing, _dangling, _pipe, _secret,
)  # fmt: skip


def read(args: tuple[str, ...], path: Path) -> int:
    """One of the reading commands on a file."""
    more = ["--to", "csv", "-o", str(path.parent / "out")] if args[0] == "export" else []
    return main([args[0], str(path), *args[1:], *more])


@pytest.mark.parametrize("args", READERS, ids=" ".join)
@pytest.mark.parametrize("spoil", BAD, ids=lambda spoil: spoil.__name__.strip("_"))
def test_what_is_no_recording_gives_one_line_and_status_2(
    spoil: Spoil,
    args: tuple[str, ...],
    recorded: Path,
    tmp_path: Path,
    capsys: Capture,
) -> None:
    if spoil is _no_batch and args == ("inspect",):
        pytest.skip("its frames can be listed")
    path = tmp_path / "bad.stageprof"
    spoil(path, recorded.read_bytes())

    assert read(args, path) == 2
    out, err = capsys.readouterr()
    assert out == "" or args == ("inspect",)  # which tells of all that it can read
    assert err.startswith("stageprof: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("args", READERS, ids=" ".join)
@pytest.mark.parametrize("left_out", [1, 20, 50])
def test_cut_recording_is_read_as_far_as_it_goes(
    left_out: int, args: tuple[str, ...], recorded: Path, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "cut.stageprof"
    path.write_bytes(recorded.read_bytes()[:-left_out])

    assert read(args, path) == 0
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    assert "incomplete" in out or args[0] == "export"


def test_newer_recording_names_both_versions(
    recorded: Path, tmp_path: Path, capsys: Capture
) -> None:
    """B9: and what to do."""
    _newer(tmp_path / "new.stageprof", recorded.read_bytes())
    main(["show", str(tmp_path / "new.stageprof")])
    err = capsys.readouterr().err
    assert f"99.{frame.MINOR}" in err
    assert f"{frame.MAJOR}.{frame.MINOR}" in err


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("nonsense",),
        ("--nonsense",),
        ("show",),
        ("show", "x", "y"),
        ("export", "x"),
        ("export", "x", "--to", "pickle"),
        ("attach", "tcp://127.0.0.1:1"),
        ("attach", "tcp://127.0.0.1:1", "-o", "x", "--for", "soon"),
        ("run",),
        ("run", "--nonsense", "x.py"),
        ("run", "no such file.py"),
        ("run", "-m", "no_such_module"),
        ("run", "-c"),
        ("run", "-o"),
    ],
    ids=" ".join,
)
def test_wrong_use_gives_one_line_and_status_2(
    args: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(list(args)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_help_lists_every_command(capsys: Capture) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"  {command.name} " in out for command in COMMANDS)
    assert {c.name for c in COMMANDS} == {
        "run", "show", "report", "app", "check", "attach", "export", "flame", "snakeviz", "inspect",
        "demo", "baseline", "compare",
    }  # fmt: skip


def test_version_is_printed(capsys: Capture) -> None:
    assert main(["--version"]) == 0
    assert stageprof.__version__ in capsys.readouterr().out


def test_json_is_the_documented_object(recorded: Path, capsys: Capture) -> None:
    assert main(["show", "--json", str(recorded)]) == 0
    found = json.loads(capsys.readouterr().out)

    assert list(found) == ["schema", "wall_s", "stages", "findings", "failures", "coverage"]
    assert found["schema"] == "stageprof.show/1"
    assert [list(row) for row in found["stages"]] == [["stage", "wall_s", "share", "busy_s"]] * 8
    assert [row["stage"] for row in found["stages"]] == [str(s) for s in stageprof.Stage]
    assert sum(row["wall_s"] for row in found["stages"]) == pytest.approx(found["wall_s"])
    assert {f["severity"] for f in found["findings"]} <= set(stageprof.Severity)
    assert found["coverage"]["complete"] is True


def test_inspect_ends_with_the_integrity(recorded: Path, capsys: Capture) -> None:
    assert main(["inspect", str(recorded)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("complete: ")


@pytest.mark.parametrize(
    ("text", "seconds"), [("60", 60), ("60s", 60), ("1.5m", 90), ("2 min", 120), ("1h", 3600)]
)
def test_time_spans_are_read_with_their_units(text: str, seconds: float) -> None:
    assert Duration().convert(text, None, None) == seconds


@pytest.mark.parametrize("address", ["tcp://10.0.0.1:8786", "ws://scheduler:80", "10.0.0.1:8786"])
def test_open_network_is_warned_of(address: str) -> None:
    assert address in warning(address)
    assert "--insecure" in warning(address)


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:8786", "tcp://[::1]:8786", "localhost:8786", "tls://10.0.0.1:8786"]
)
def test_safe_connection_is_not_warned_of(address: str) -> None:
    assert warning(address) == ""


def test_attach_without_a_cluster_says_so_within_seconds(command: Command, tmp_path: Path) -> None:
    done = command("attach", "tcp://127.0.0.1:1", "-o", "x.stageprof")

    assert done.returncode == 2
    assert done.stderr.startswith("stageprof: no scheduler at tcp://127.0.0.1:1 ")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_closed_pipe_is_no_error_message(recorded: Path) -> None:
    line = f"stageprof show --json {recorded} | true"
    shell = line.replace("stageprof", "python -m stageprof", 1)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-c", shell], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""


def test_a_defect_of_ours_has_a_status_that_says_nothing_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python's own would be 1, which is "regression" of a comparison."""
    from stageprof.commands.inspect import inspect

    def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(inspect, "callback", fails)
    assert main(["inspect", __file__]) == 70
    assert "report it" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [("show", "--markdown"), ("show",), ("inspect",),
     ("export", "--to", "csv", "-o", "данные-csv")],
)  # fmt: skip
def test_letters_that_the_output_lacks_are_escaped(
    words: tuple[str, ...], tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were said to be a damaged recording, or a defect after all was done."""
    path = tmp_path / "данные.stageprof"
    record(path, ("ключ",), label="Отчёт")
    monkeypatch.chdir(tmp_path)
    out = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", out)

    assert main([words[0], str(path), *words[1:]]) == 0

    out.flush()
    assert b"\\u043" in out.buffer.getvalue()
    assert capsys.readouterr().err.count("stageprof:") == 0
