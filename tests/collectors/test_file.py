"""The container: what is written comes back, and what was acknowledged is never lost."""

from __future__ import annotations

import os
import random
import resource
import stat
import subprocess
import sys
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

import stageprof
from stageprof_collectors.storage import frame
from stageprof_collectors.storage.collector import Collector
from stageprof_collectors.storage.file import Frames, Writer, read_frames
from stageprof_runtime.errors import (
    DamagedRecording,
    NewerRecording,
    NotARecording,
    RecordingNotWritable,
)
from stageprof_runtime.locked import Locked

HEADER = {"program": "etl.py", "cores": 2}
BATCHES = [bytes([n]) * (n * 1000) for n in range(1, 6)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed recording of five batches, a frame each."""
    path = tmp_path / "a.stageprof"
    with Writer(path, HEADER) as writer:
        for batch in BATCHES:
            assert writer.write(batch)
    return path


def batches_of(frames: Frames) -> list[bytes]:
    return [
        bytes(b) for found in frames if found.type == frame.BATCH for b in frame.split(found.raw)
    ]


def borders(path: Path) -> list[int]:
    return [found.offset for found in read_frames(path)]


# -- what goes in comes out ---------------------------------------------------------------


def test_batches_come_back_in_order_and_the_recording_is_complete(path: Path) -> None:
    frames = read_frames(path)

    assert batches_of(frames) == BATCHES
    assert (frames.complete, frames.reason, frames.count) == (True, "", 7)
    assert frames.offset == path.stat().st_size


def test_first_frame_is_the_header_and_last_the_totals(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "a", HEADER)
    writer.write(b"x", b"y")
    assert writer.close({"lost": 3})

    found = list(read_frames(tmp_path / "a"))

    assert frame.decode_json(found[0].raw) == HEADER
    expected = {"lost": 3, "frames": 2, "batches": 2, "refused": 0}
    assert frame.decode_json(found[-1].raw) == expected


def test_batches_written_together_share_a_frame(tmp_path: Path) -> None:
    with Writer(tmp_path / "a", {}) as writer:
        writer.write(*BATCHES)

    frames = read_frames(tmp_path / "a")
    assert batches_of(frames) == BATCHES
    assert frames.count == 3


def test_only_the_owner_may_read_a_recording(path: Path) -> None:
    """T22: keys and paths are in it."""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_replacing_a_recording_takes_others_permissions_away(path: Path) -> None:
    path.chmod(0o644)
    Writer(path, {}).close()

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert batches_of(read_frames(path)) == []


def test_unknown_frame_is_skipped_if_its_type_says_so(tmp_path: Path) -> None:
    path = rewritten(tmp_path, 0x80 | 9)
    frames = read_frames(path)
    assert batches_of(frames) == [b"x"]
    assert frames.complete


def test_unknown_frame_ends_the_reading_otherwise(tmp_path: Path) -> None:
    frames = read_frames(rewritten(tmp_path, 9))
    assert batches_of(frames) == []
    assert not frames.complete
    assert "frame type 9 is unknown" in frames.reason


def rewritten(folder: Path, kind: int) -> Path:
    """A recording with a frame of that type between META and one batch, all checksums right."""
    path = folder / "new.stageprof"
    meta = frame.encode_json(HEADER)
    head = frame.file_head(meta)
    contents = [
        (frame.META, meta),
        (kind, b"from the future"),
        (frame.BATCH, frame.join([b"x"])),
        (frame.END, frame.encode_json({"frames": 3})),
    ]
    frames = [frame.encode(head, n, *content) for n, content in enumerate(contents)]
    path.write_bytes(head + b"".join(frames))
    return path


# -- files that are not whole -------------------------------------------------------------


def test_cut_anywhere_a_recording_keeps_all_whole_frames(path: Path) -> None:
    """A cut is never an error: reading ends with the last frame that is all there."""
    data, offsets = path.read_bytes(), borders(path)
    for cut in range(offsets[1], len(data), 97):
        path.write_bytes(data[:cut])
        frames = read_frames(path)
        whole = sum(1 for offset in offsets[2:] if offset <= cut)
        assert batches_of(frames) == BATCHES[:whole]
        assert not frames.complete
        assert frames.reason


def test_cut_between_two_frames_is_noticed_too(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: borders(path)[-1]])
    frames = read_frames(path)
    assert batches_of(frames) == BATCHES
    assert "cut short" in frames.reason


def test_damage_in_the_middle_costs_the_frame_that_it_is_in(path: Path) -> None:
    data, at = bytearray(path.read_bytes()), borders(path)[3]
    data[at + 20] ^= 4
    path.write_bytes(data)

    frames = read_frames(path)

    assert batches_of(frames) == BATCHES[:2] + BATCHES[3:]
    assert (frames.complete, frames.missing) == (False, 1)
    assert f"frame 3 at byte {at:,}" in frames.reason
    assert "checksum" in frames.reason
    assert "1 frame (" in frames.reason


@pytest.mark.parametrize("what", ["swapped", "duplicated", "left out"])
def test_frames_out_of_place_are_noticed(path: Path, what: str) -> None:
    """None is read twice, or behind one that was written later."""
    data, at = path.read_bytes(), [*borders(path), path.stat().st_size]
    parts = [data[a:b] for a, b in pairwise(at)]
    parts[2:4] = {
        "swapped": [parts[3], parts[2]],
        "duplicated": [parts[2], parts[2], parts[3]],
        "left out": [parts[3]],
    }[what]
    path.write_bytes(data[: at[0]] + b"".join(parts))

    frames = read_frames(path)

    read, missing = {"swapped": ((0, 2, 3, 4), 1), "left out": ((0, 2, 3, 4), 1)}.get(
        what, ((0, 1, 2, 3, 4), 0)
    )
    assert batches_of(frames) == [BATCHES[i] for i in read]
    assert (frames.complete, frames.missing) == (False, missing)


def test_bytes_after_the_end_are_noticed(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"?")
    frames = read_frames(path)
    assert batches_of(frames) == BATCHES
    assert not frames.complete
    assert "after the END" in frames.reason


def test_memory_limit_stops_reading_and_says_so(path: Path) -> None:
    frames = read_frames(path, max_memory=4000)
    assert batches_of(frames) == BATCHES[:2]
    assert "max_memory" in frames.reason


def test_without_a_readable_header_there_is_nothing_to_open(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedRecording, match="checksum"):
        list(read_frames(path))


@pytest.mark.parametrize("kind", [frame.META, frame.END])
def test_json_of_many_objects_is_not_read(tmp_path: Path, kind: int) -> None:
    """T13: 64 kB of a header made 1.6 GB of lists."""
    many = b'{"frames": 1, "a": [' + b"[]," * (frame.MAX_JSON // 3) + b"[]]}"
    meta = many if kind == frame.META else b"{}"
    head = frame.file_head(meta)
    end = frame.encode(head, 1, frame.END, many)
    path = tmp_path / "bomb"
    path.write_bytes(head + frame.encode(head, 0, frame.META, meta) + end)
    if kind == frame.META:
        with pytest.raises(DamagedRecording, match=r"expected at most .* for 4,194,304"):
            list(read_frames(path))
    else:
        frames = read_frames(path)
        assert [found.type for found in frames] == [frame.META]
        assert not frames.complete
        assert "for 4,194,304" in frames.reason


def test_a_label_of_any_length_is_no_reason_to_read_nothing(tmp_path: Path) -> None:
    collector = Collector(tmp_path / "a", "x" * (frame.MAX_JSON + 1))
    assert collector.close().complete


def test_newer_major_version_is_refused_with_both_versions_named(path: Path) -> None:
    """B9: and what to do."""
    data = bytearray(path.read_bytes())
    data[8:10] = 2, 5
    path.write_bytes(data)
    ours = rf"{frame.MAJOR}\.{frame.MINOR}"
    with pytest.raises(NewerRecording, match=rf"version 2\.5.*at most {ours}.*upgrade"):
        read_frames(path)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"\x89stprof\n\x01", b"print('hello')\n" * 9])
def test_file_of_another_kind_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(NotARecording, match=r"expected a \*\.stageprof recording"):
        read_frames(path)


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    """B8: a FIFO, a folder, a name with NUL."""
    os.mkfifo(tmp_path / "fifo")
    for name in ("missing", ".", "fifo", "nul\0"):
        with pytest.raises(NotARecording):
            read_frames(tmp_path / name)


# -- writing in an unkind world -----------------------------------------------------------


@pytest.mark.parametrize("name", ["no/such/folder", ".", "fifo", "script.py", "full"])
def test_path_that_cannot_be_recorded_to_is_refused_at_once(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "script.py").write_text("print('precious')")
    (tmp_path / "full").symlink_to("/dev/full")
    with pytest.raises(RecordingNotWritable):
        Writer(tmp_path / name, {})
    assert (tmp_path / "script.py").read_text() == "print('precious')"


def test_batch_that_no_frame_can_hold_is_refused_and_counted(tmp_path: Path) -> None:
    noise = random.Random(0).randbytes(frame.MAX_PAYLOAD + 1000)
    with Writer(tmp_path / "a", {}) as writer:
        assert not writer.write(b"small", noise, b"also small")
        assert (writer.refused, writer.batches, writer.failed) == (1, 2, "")
    assert batches_of(read_frames(tmp_path / "a")) == [b"small", b"also small"]


def test_disk_that_fills_up_ends_the_recording_and_nothing_else(tmp_path: Path) -> None:
    """RLIMIT_FSIZE makes the first write that does not fit a short one, as a full disk does."""
    path, soft = tmp_path / "a", resource.getrlimit(resource.RLIMIT_FSIZE)
    noise = random.Random(0).randbytes(1000)
    writer = Writer(path, HEADER)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, soft[1]))
    try:
        done = [writer.write(noise) for _ in range(20)]
        closed = writer.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, soft)

    assert done == [True] * 4 + [False] * 16
    assert "too large" in writer.failed
    assert not closed
    assert batches_of(read_frames(path)) == [noise] * 4


@pytest.mark.parametrize("after", ["write", "close", "abandon", "a full disk"])
def test_nothing_is_written_into_a_file_of_the_program_that_has_our_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    """A program may close all files that are open, and open its own."""
    writer = Writer(tmp_path / "a", HEADER)
    assert writer.write(b"before")
    number = writer._file.number

    def anew() -> int:
        os.close(number)
        theirs = os.open(tmp_path / "theirs.txt", os.O_RDWR | os.O_CREAT)
        assert theirs == number
        return os.write(theirs, b"theirs")

    def full(fd: int, data: bytes) -> int:
        monkeypatch.undo()
        anew()
        raise OSError(28, "No space left on device")

    if after == "a full disk":
        monkeypatch.setattr("stageprof_collectors.storage.file.os.write", full)
        assert not writer.write(b"x" * 99)
    else:
        anew()
    if after == "write":
        assert not writer.write(b"x")
    elif after == "abandon":
        writer.abandon()
    assert not writer.close()

    assert (tmp_path / "theirs.txt").read_bytes() == b"theirs"
    os.close(number)  # it is still open
    assert writer.failed or after == "abandon"
    assert batches_of(read_frames(tmp_path / "a")) == [b"before"]


def test_a_lock_is_let_go_of_without_closing_a_file_of_the_program(tmp_path: Path) -> None:
    held = Locked(os.fspath(tmp_path / "a"))
    number = held.file
    os.close(number)
    theirs = os.open(tmp_path / "theirs.txt", os.O_RDWR | os.O_CREAT)
    assert theirs == number

    assert held.file == -1
    held.let_go()

    os.close(theirs)  # it is still open


def test_device_that_takes_nothing_is_noticed_at_the_next_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(tmp_path / "a", HEADER)
    full, write = os.open("/dev/full", os.O_WRONLY), os.write
    monkeypatch.setattr(
        "stageprof_collectors.storage.file.os.write", lambda _, data: write(full, data)
    )
    assert not writer.write(b"x")
    assert "No space left" in writer.failed
    assert not writer.write(b"y")
    assert not writer.close()
    os.close(full)


def test_a_recording_that_is_refused_stays_as_it_is(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of somebody else's, whose permissions are not ours to take, was emptied first."""
    before = path.read_bytes()

    def not_ours(fd: int, mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("stageprof_collectors.storage.file.os.fchmod", not_ours)
    with pytest.raises(RecordingNotWritable, match="Operation not permitted"):
        Writer(path, {})
    assert path.read_bytes() == before


def test_a_header_that_is_none_leaves_no_file_and_empties_none(path: Path, tmp_path: Path) -> None:
    """It stayed open, and locked."""
    before = path.read_bytes()
    for each in (path, tmp_path / "new"):
        with pytest.raises(ValueError, match="JSON"):
            Writer(each, {"cpus": float("nan")})
    assert path.read_bytes() == before
    assert not (tmp_path / "new").exists()
    assert Writer(path, {}).close()


def test_a_write_whose_loss_is_told_as_the_file_is_closed_was_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network file system has lost it; `close` said that the recording is complete."""
    writer = Writer(tmp_path / "a", HEADER)
    close = writer._file.close

    def late() -> None:
        close()
        raise OSError(122, "Disk quota exceeded")

    monkeypatch.setattr(writer._file, "close", late)
    assert not writer.close()
    assert "quota" in writer.failed


def test_writing_after_the_end_does_nothing(path: Path) -> None:
    size = path.stat().st_size
    writer = Writer(path.with_name("b"), {})
    assert writer.close()
    assert writer.closed
    assert not writer.write(b"late")
    assert not writer.close()
    assert path.stat().st_size == size


def test_forked_child_leaves_the_recording_alone(tmp_path: Path) -> None:
    code = """if 1:
        import os, sys
        from stageprof_collectors.storage.file import Writer
        writer = Writer(sys.argv[1], {})
        child = os.fork()
        if not child:
            writer.write(b"from the child")
            writer.close()
            os._exit(0)
        os.waitpid(child, 0)
        assert writer.write(b"from the parent")
        assert writer.close()
    """
    subprocess.run([sys.executable, "-c", code, tmp_path / "a"], check=True)
    frames = read_frames(tmp_path / "a")
    assert batches_of(frames) == [b"from the parent"]
    assert frames.complete


#: Writes batches for ever; says after each, in one unbuffered byte, that it was acknowledged. They
#: are small: as many as a pipe holds before anybody reads it are no bomb for who opens the file.
_ENDLESS = """
import os, sys
from stageprof_collectors.storage.file import Writer
writer, n = Writer(sys.argv[1], {}), 0
while writer.write(n.to_bytes(4, "big") * 250):
    os.write(1, b".")
    n += 1
"""


@pytest.mark.parametrize("seed", range(10))
def test_killed_at_any_instant_every_acknowledged_batch_is_readable(
    tmp_path: Path, seed: int
) -> None:
    """F5: of the file alone; of a whole recorder see tests/reliability."""
    path, wanted = tmp_path / "a", random.Random(seed).randrange(1, 2000)
    acknowledged = 0
    with subprocess.Popen([sys.executable, "-c", _ENDLESS, path], stdout=subprocess.PIPE) as child:
        assert child.stdout
        while acknowledged < wanted:
            acknowledged += len(os.read(child.stdout.fileno(), wanted))
        child.kill()
        acknowledged += len(child.stdout.read())

    frames = read_frames(path)
    found = batches_of(frames)

    assert len(found) >= acknowledged
    assert found == [n.to_bytes(4, "big") * 250 for n in range(len(found))]
    assert not frames.complete


def test_what_was_broken_off_does_not_say_that_it_is_whole(tmp_path: Path) -> None:
    """As a dump of a flight recorder that Ctrl-C ended."""
    path = tmp_path / "x.stageprof"
    with suppress(KeyboardInterrupt), Writer(path, {}):
        raise KeyboardInterrupt
    assert not stageprof.open(path).complete
