"""Behind damage reading goes on, with nothing but what was written, and says what is missing."""

from __future__ import annotations

import random
import zlib
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.generate import generate
from spent import spent
from stageprof_collectors.storage import frame
from stageprof_collectors.storage.file import Frames, Writer, read_frames
from stageprof_collectors.storage.inspection import dump
from stageprof_collectors.storage.store import Store

#: Payloads that do not compress, of unlike lengths.
BATCHES = [random.Random(n).randbytes(200 + 300 * n) for n in range(12)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed recording of twelve batches, a frame each; they are the frames 1 to 12."""
    path = tmp_path / "a.stageprof"
    with Writer(path, {"program": "etl.py"}) as writer:
        for batch in BATCHES:
            assert writer.write(batch)
    return path


def read(path: Path) -> tuple[list[bytes], Frames]:
    frames = read_frames(path)
    batches = [found.raw[4:] for found in frames if found.type == frame.BATCH]
    return batches, frames


def parts(path: Path) -> list[bytes]:
    """The file's head, and each of its frames."""
    data = path.read_bytes()
    at = [0, *(found.offset for found in read_frames(path)), len(data)]
    return [data[a:b] for a, b in pairwise(at)]


def spoil(path: Path, at: int, size: int) -> None:
    """Flip bits of so many bytes there."""
    data = bytearray(path.read_bytes())
    data[at : at + size] = bytes(byte ^ 0x5A for byte in data[at : at + size])
    path.write_bytes(data)


def begins(path: Path, number: int) -> int:
    return sum(map(len, parts(path)[: number + 1]))


@pytest.mark.parametrize("inside", [0, 1, 5, 9, 13, 100], ids=lambda n: f"byte {n} of the frame")
def test_a_damaged_frame_costs_itself_alone(path: Path, inside: int) -> None:
    """Wherever it is damaged: its type, its lengths, its checksum or its payload."""
    spoil(path, begins(path, 5) + inside, 3)

    batches, frames = read(path)

    assert batches == BATCHES[:4] + BATCHES[5:]
    assert (frames.complete, frames.missing, frames.number) == (False, 1, 14)
    assert "frame 5 at byte" in frames.reason
    assert "1 frame (" in frames.reason


def test_of_damage_over_several_frames_it_is_told_how_many_are_missing(path: Path) -> None:
    begin, end = begins(path, 4) + 20, begins(path, 8) + 20
    spoil(path, begin, end - begin)

    batches, frames = read(path)

    assert batches == BATCHES[:3] + BATCHES[8:]
    assert (frames.complete, frames.missing) == (False, 5)
    assert "5 frames (" in frames.reason


def test_damage_in_many_places_is_told_in_a_line(path: Path) -> None:
    for at in [begins(path, number) for number in (2, 4, 6, 8, 10)]:
        spoil(path, at + 30, 2)

    batches, frames = read(path)

    assert batches == [b for n, b in enumerate(BATCHES, 1) if n not in (2, 4, 6, 8, 10)]
    assert frames.missing == 5
    assert frames.reason.endswith("; 2 more")


def test_damage_and_a_cut_are_both_told(path: Path) -> None:
    spoil(path, begins(path, 5) + 20, 1)
    path.write_bytes(path.read_bytes()[: begins_of_end(path)])

    batches, frames = read(path)

    assert batches == BATCHES[:4] + BATCHES[5:]
    assert "frame 5 at byte" in frames.reason
    assert "without an END frame" in frames.reason


def begins_of_end(path: Path) -> int:
    return list(read_frames(path))[-1].offset


def test_bytes_between_frames_are_told_though_nothing_is_missing(path: Path) -> None:
    whole = parts(path)
    path.write_bytes(b"".join([*whole[:4], b"between", *whole[4:]]))

    batches, frames = read(path)

    assert batches == BATCHES
    assert (frames.complete, frames.missing, frames.passed) == (False, 0, 7)
    assert "0 frames (7 bytes)" in frames.reason


def test_frames_of_another_recording_are_not_taken(path: Path, tmp_path: Path) -> None:
    """They have the same numbers, but the salt of another header."""
    with Writer(tmp_path / "b", {"program": "other.py"}) as writer:
        for batch in reversed(BATCHES):
            writer.write(batch)
    mine, other = parts(path), parts(tmp_path / "b")
    path.write_bytes(b"".join([*mine[:4], *other[4:7], *mine[7:]]))

    batches, frames = read(path)

    assert batches == BATCHES[:2] + BATCHES[5:]
    assert (frames.complete, frames.missing) == (False, 3)


def test_reading_never_goes_back(path: Path) -> None:
    """Frames in the opposite order: the first that is read is the last that can be."""
    whole = parts(path)
    path.write_bytes(b"".join([*whole[:2], *whole[:1:-1]]))

    batches, frames = read(path)

    assert len(batches) <= 1
    assert not frames.complete
    assert frames.reason


def test_a_header_is_not_searched_for(path: Path) -> None:
    from stageprof_runtime.errors import DamagedRecording

    spoil(path, 20, 1)
    with pytest.raises(DamagedRecording):
        read(path)


@pytest.mark.parametrize("length", [8, 4096, 1 << 20])
def test_a_search_is_bounded_whatever_is_in_the_file(path: Path, length: int) -> None:
    """Millions of heads that look like good ones, and sums of which none is right."""
    whole = parts(path)
    fake = frame.FRAME_HEAD.pack(frame.BATCH, length, 1 << 20, 7) + b"x\x01"
    bad = bytearray(whole[3])
    bad[-1] ^= 1
    path.write_bytes(b"".join([*whole[:3], bytes(bad), fake * ((48 << 20) // len(fake))]))
    once = spent(lambda: zlib.crc32(path.read_bytes()))
    batches, frames = read(path)
    assert batches == BATCHES[:1]
    assert not frames.complete
    assert spent(lambda: read(path)) < 40 * once


def test_a_store_says_which_batches_are_missing(tmp_path: Path) -> None:
    """The tasks before and behind are there, and the numbers of its batches tell of the gap."""
    path = tmp_path / "run.stageprof"
    generate(path, tasks=3000, workers=2, threads=2)
    whole, sizes = Store.open(path), [found.size for found in read_frames(path)]
    number = len(sizes) // 2
    spoil(path, begins(path, number) + 50, 200)

    store = Store.open(path)

    missing = sum(o.batches for o in whole.origins) - sum(o.batches for o in store.origins)
    assert 0 < missing == sum(origin.lost for origin in store.origins)
    assert store.totals == whole.totals
    assert (store.complete, store.skipped["damaged frame"]) == (False, 1)
    assert f"frame {number} at byte" in store.incomplete_reason
    assert list(dump(path))[-1].startswith(f"incomplete: {len(sizes) - 1} frames")
