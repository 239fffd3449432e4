"""Segments by themselves: bounded, each readable alone, and no fault of the disk is an error."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from preload.shipped import (
    ABOUT,
    SCHEDULER,
    WORKER,
    begins,
    ends,
    forget_first,
    hello,
    look,
    opened,
    roll,
    shipped,
)  # fmt: skip
from stageprof_collectors.storage.flight import assemble
from stageprof_collectors.storage.store import Store
from stageprof_runtime.errors import DamagedRecording, NotARecording, StageprofError
from stageprof_runtime.event import COLUMN, LINE, MARK
from stageprof_runtime.flight import record
from stageprof_runtime.flight.basis import LATEST
from stageprof_runtime.flight.segments import SUFFIX, Segments
from stageprof_runtime.flight.tape import WAITING, Tape
from stageprof_runtime.guard import Watch


def test_what_was_written_is_in_the_recording(folder: Path, segments: Segments) -> None:
    segments.write([*hello(), begins(1, 1)])
    segments.write([*ends(1, 5, 1)])
    segments.close()
    recording, window = opened(folder)

    assert recording.complete
    assert recording.tasks()["key"].tolist() == ["long-1"]
    assert recording.wall == pytest.approx(0.5)
    assert recording.stages()["wall_s"].sum() == pytest.approx(recording.wall)
    assert not window.overwritten


def test_a_process_that_closes_all_files_keeps_its_own(
    folder: Path, segments: Segments, tmp_path: Path
) -> None:
    segments.write([*hello(), begins(1, 1)])
    number = segments._fd
    os.close(number)
    with (tmp_path / "theirs").open("wb", buffering=0) as theirs:
        assert theirs.fileno() == number
        segments.write([*ends(1, 5, 1)])
        segments.close()
        theirs.write(b"theirs")
    recording, _ = opened(folder)

    assert (tmp_path / "theirs").read_bytes() == b"theirs"
    assert recording.tasks()["key"].tolist() == ["long-1"]


def test_a_later_segment_knows_what_was_told_before_it(folder: Path, segments: Segments) -> None:
    """Workers, places in trees of stacks, and the run that was under way, with its key."""
    segments.write([*hello(), begins(1, 1), shipped(SCHEDULER, 2, running=1)])
    roll(segments)
    segments.write([look(1), *ends(1, 5, 1)])
    segments.close()
    forget_first(folder)
    recording, window = opened(folder)

    assert recording.workers()["name"].tolist() == ["alice"]
    stacks = [recording.nodes.stack(i) for i in range(len(recording.nodes))]
    assert ["outer", "inner"] in [[frame.name for frame in stack] for stack in stacks]
    task = recording.tasks().iloc[0]
    assert task["key"] == "long-1"
    assert task["duration_s"] == pytest.approx(0.398)
    assert task["start_s"] == pytest.approx(-0.099)  # it began before the window
    assert window.overwritten


def test_lines_and_columns_that_were_told_once_are_told_again(
    folder: Path, segments: Segments
) -> None:
    """Of a name or column that was told twice the first holds, as in a recording."""
    load = (COLUMN, 5, "load", "city", "object", "string", 5000, 900_000)
    lines = [(LINE, "load", "/home/me/etl.py", number, 1) for number in (3, 7)]
    segments.write([*hello(), shipped(WORKER, 1, load, *lines)])
    roll(segments)
    segments.write([look(2)])
    segments.close()
    forget_first(folder)
    store = opened(folder)[0].store
    texts = store.strings

    columns = store.table("column")
    (told,) = zip(*(columns[f].tolist() for f in ("name", "label", "type", "how")), strict=True)
    assert [texts[i] for i in told] == ["load", "city", "object", "string"]
    assert columns["count"].tolist() == [5000]
    assert columns["nbytes"].tolist() == [900_000]
    assert store.table("line")["line"].tolist() == [3]


def test_of_what_is_told_once_the_latest_are_kept(folder: Path, segments: Segments) -> None:
    lines = [(LINE, f"name-{i}", "/home/me/etl.py", i, 0) for i in range(LATEST + 10)]
    segments.write([*hello(), shipped(WORKER, 1, *lines)])
    roll(segments)
    segments.write([look(2)])
    segments.close()
    forget_first(folder)

    kept = opened(folder)[0].store.table("line")["line"]
    assert sorted(kept.tolist()) == list(range(10, LATEST + 10))


def test_the_account_of_a_window_begins_with_it(folder: Path, segments: Segments) -> None:
    """A computation that began before has all of the window, not a second more."""
    segments.write([*hello(), begins(1, 1)])
    roll(segments)
    segments.write(ends(1, 5, 1))
    segments.close()
    forget_first(folder)
    recording, _ = opened(folder)

    assert recording.wall == pytest.approx(0.4)
    stages = recording.stages()["wall_s"]
    assert stages["execution"] == pytest.approx(0.398, abs=0.002)
    assert stages.sum() == pytest.approx(recording.wall)


def test_nobody_waits_for_a_graph_that_was_done_before(folder: Path, segments: Segments) -> None:
    segments.write([*hello(), begins(1, 1), *ends(1, 2, 1)])
    roll(segments)
    segments.write([shipped(SCHEDULER, 9)])
    segments.close()
    forget_first(folder)
    recording, _ = opened(folder)

    assert len(recording.tasks()) == 0
    assert recording.stages()["share"]["outside"] == 1


def test_drops_cost_and_gaps_are_counted_from_the_window_on(
    folder: Path, segments: Segments
) -> None:
    segments.write([shipped(WORKER, 0), shipped(WORKER, 7, lost=100, calls=100)])
    roll(segments)
    segments.write([shipped(WORKER, 8, lost=130, calls=104)])
    segments.write([shipped(WORKER, 10, lost=130, calls=104)])
    segments.close()
    forget_first(folder)
    coverage = opened(folder)[0].coverage()

    assert coverage["dropped"] == {"ring full": 30}
    assert coverage["overhead"]["hook"]["calls"] == 4
    assert coverage["batches_lost"] == 1  # the ninth; those before the window are none of it


def test_more_than_the_size_never_lies_on_disk(folder: Path) -> None:
    size = 100_000
    segments = Segments(str(folder), ABOUT, 10, size)
    for seq in range(1, 400):
        marks = [(MARK, seq, "task failed", os.urandom(20).hex()) for _ in range(100)]
        segments.write([shipped(WORKER, seq, *marks)])
        assert sum(path.stat().st_size for path in folder.iterdir()) <= size
    segments.close()
    recording, window = opened(folder)

    assert segments.dropped == {}
    assert window.overwritten
    assert window.cut
    assert recording.coverage()["batches_lost"] == 0
    assert 0 < recording.store.origins[0].last_seq < 350


def test_segments_older_than_the_minutes_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At least the minutes are kept, and at most an eighth more."""
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    segments = Segments(str(folder), ABOUT, 8, 100_000_000)
    for seq in range(1, 40):
        segments.write([shipped(WORKER, seq)])
        now += 60
        assert len(list(folder.iterdir())) == min(seq, 9)
    segments.close()


def test_a_batch_that_is_none_is_kept_and_harms_nothing(folder: Path, segments: Segments) -> None:
    segments.write([*hello(), b"\xc1 no msgpack", b""])
    segments.close()
    assert len(opened(folder)[0].workers()) == 1


@pytest.mark.parametrize("cut", [1, 17, 300], ids=str)
def test_a_torn_segment_is_good_up_to_its_last_whole_record(
    cut: int, folder: Path, segments: Segments
) -> None:
    segments.write(hello())
    whole = next(folder.iterdir()).stat().st_size
    segments.write([begins(1, 1)])
    segments.close()
    path = next(folder.iterdir())
    os.truncate(path, min(whole + cut, path.stat().st_size - 1))
    recording, _ = opened(folder)

    assert len(recording.workers()) == 1
    assert len(recording.tasks()) == 0


def test_a_segment_of_anybody_gives_a_recording_or_one_error(
    folder: Path, segments: Segments
) -> None:
    """Every byte may be anything: nothing else than a `StageprofError` comes out."""
    segments.write([*hello(), begins(1, 1), *ends(1, 5, 1)])
    segments.close()
    path = next(folder.iterdir())
    good = path.read_bytes()
    for at in range(0, len(good), 3):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :])
        with suppress(StageprofError):  # nothing in it can be read
            opened(folder)


@pytest.mark.parametrize("said", [math.nan, math.inf, None, [math.nan], {"a": -math.inf}], ids=repr)
def test_what_a_segment_says_of_its_machine_may_be_anything(
    said: Any, folder: Path, tmp_path: Path
) -> None:
    """A number that JSON lacks ended in a traceback, and in a file that stayed locked."""
    facts = {"cpus": said, "dask": "2026.8.0", "program": said}
    batches = record.encode(record.BATCHES, record.join([shipped(WORKER, 1)]))
    folder.mkdir(exist_ok=True)
    (folder / f"1{SUFFIX}").write_bytes(record.encode_json(record.ABOUT, facts) + batches)
    for _ in range(2):
        assemble(folder, tmp_path / "a.stageprof")
    header = Store.open(tmp_path / "a.stageprof").header
    assert (header["cpus"], header["dask"], header["program"]) == ("", "2026.8.0", "")


def test_segments_that_claim_more_than_files_of_their_size_may_are_broken_off(
    folder: Path, tmp_path: Path
) -> None:
    """A kilobyte held a million batches of nothing, each of which was looked at."""
    folder.mkdir(exist_ok=True)
    nothing = record.join([shipped(WORKER, 1)]) + bytes(4 << 20)
    (folder / f"1{SUFFIX}").write_bytes(record.encode(record.BATCHES, nothing))
    with pytest.raises(DamagedRecording, match="more than segments of their size"):
        assemble(folder, tmp_path / "a.stageprof")
    assert not Store.open(tmp_path / "a.stageprof").complete


def test_segments_that_claim_more_bytes_than_files_of_their_size_may_make_no_recording(
    folder: Path, tmp_path: Path
) -> None:
    folder.mkdir(exist_ok=True)
    large = record.encode(record.BATCHES, bytes(32 << 20))
    (folder / f"1{SUFFIX}").write_bytes(large * 6)
    with pytest.raises(DamagedRecording, match="more than segments of their size"):
        assemble(folder, tmp_path / "a.stageprof")
    assert list(tmp_path.glob("*.stageprof")) == []


def test_segments_of_more_places_than_any_cluster_has_are_broken_off(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stageprof_collectors.storage.flight.PLACES", 10)
    folder.mkdir(exist_ok=True)
    batches = [shipped(WORKER._replace(pid=pid), 1) for pid in range(20)]
    (folder / f"1{SUFFIX}").write_bytes(record.encode(record.BATCHES, record.join(batches)))
    with pytest.raises(DamagedRecording, match="more than segments of their size"):
        assemble(folder, tmp_path / "a.stageprof")


def test_a_folder_without_segments_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotARecording, match="holds no flight recording"):
        assemble(tmp_path, tmp_path / "x.stageprof")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_too_slow_asks_places_to_wait_and_then_drops(segments: Segments) -> None:
    """What waits in the scheduler's memory has a bound."""
    tape = Tape(segments, Watch("tape"))
    assert tape.ready()
    while tape.ready():
        tape.keep(bytes(1 << 20))
    assert tape.waiting == WAITING
    for _ in range(100):
        tape.keep(bytes(1 << 20))
    assert tape.waiting == 2 * WAITING
    assert segments.dropped["disk too slow"] == 100 - WAITING // (1 << 20)
    tape.stop()
    assert tape.waiting == 0
