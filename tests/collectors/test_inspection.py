"""The frames as text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stageprof_collectors.storage import frame
from stageprof_collectors.storage.file import Writer
from stageprof_collectors.storage.inspection import dump
from stageprof_collectors.text import visible
from stageprof_runtime.batch import pack
from stageprof_runtime.errors import NotARecording
from stageprof_runtime.event import MARK, Place

EVIL = Place("worker", "h\x1b]0;owned\x07", 1, "tcp://x\n\u202egnp.exe\x9b31m", 0)


def recording(folder: Path) -> Path:
    path = folder / "r.stageprof"
    with Writer(path, {"title": "\x1b[31m"}) as writer:
        rows = [(MARK, 0, "a", "b")] * 3
        writer.write(pack(EVIL, 0, 17, rows), b"junk")
        writer.write(pack(EVIL, 4, 18, rows, drops={"full\x00": 2}))
    return path


def test_each_frame_and_batch_has_a_line(tmp_path: Path) -> None:
    lines = list(dump(recording(tmp_path)))
    assert lines[0].endswith(f"r.stageprof: version {frame.MAJOR}.{frame.MINOR}")
    assert re.match(r" +0 @16 +META +\d+ -> \d+ bytes, crc ok$", lines[1])
    assert re.match(r" +1 @\d+ +BATCH +\d+ -> [\d,]+ bytes, crc ok$", lines[3])
    assert "seq 0 t 17: mark 3" in lines[4]
    assert "damaged: a batch cannot be read" in lines[5]
    assert "seq 4 t 18: mark 3; drops {'full\\x00': 2}" in lines[7]
    assert lines[-2].strip() == '{"batches": 3, "frames": 3, "refused": 0}'


def test_last_line_is_about_integrity(tmp_path: Path) -> None:
    path = recording(tmp_path)
    assert list(dump(path))[-1].startswith("complete: 4 frames")
    path.write_bytes(path.read_bytes()[:-1])
    last = list(dump(path))[-1]
    assert last.startswith("incomplete: 3 frames")
    assert "frame 3 at byte" in last


def test_no_character_of_a_recording_acts_on_the_terminal(tmp_path: Path) -> None:
    text = "".join(dump(recording(tmp_path)))
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert r"h\x1b]0;owned\x07" in text
    assert r"tcp://x\x0a\u202egnp.exe\x9b31m" in text


def test_visible_leaves_ordinary_text_alone() -> None:
    assert visible("naïve 日本 \t") == "naïve 日本 \\x09"


def test_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("hello")
    with pytest.raises(NotARecording):
        list(dump(tmp_path / "x"))
