"""What is recorded of many tasks on many workers: nothing is lost, and its cost grows with it."""

from __future__ import annotations

import cProfile
import math
import pstats
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
import pytest

from benchmarks.flood import Flood
from benchmarks.picture import Line, loglog
from benchmarks.scale import SLOPE, measure, slope
from stageprof_collectors.findings.settings import DEFAULTS
from stageprof_collectors.recording import Recording
from stageprof_collectors.replay import replay
from stageprof_collectors.replay.change import Change
from stageprof_collectors.storage import collector as collecting
from stageprof_collectors.storage.collector import Collector
from stageprof_collectors.storage.frames import MAX_READ
from stageprof_collectors.storage.key import pack_keys, text_of_key
from stageprof_collectors.storage.keylist import KeyList
from stageprof_collectors.storage.layered import Layered, layer_of
from stageprof_collectors.storage.merge import merge
from stageprof_collectors.storage.rows import Rows
from stageprof_collectors.storage.store import Store
from stageprof_runtime.event import TABLES
from stageprof_runtime.stage import Stage

#: Of the flood in most tests here: 40 workers, 2 waves of 4 tasks on each of their threads.
TASKS, WORKERS = 1280, 40


@pytest.fixture(scope="module")
def batches() -> list[tuple[int, bytes]]:
    """The flood's batches, each with its number of rows."""
    return list(Flood(TASKS, WORKERS).stream())


@pytest.fixture(scope="module")
def collected(batches: list[tuple[int, bytes]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a collector makes of them."""
    path = tmp_path_factory.mktemp("scale") / "flood.stageprof"
    collector = Collector(path)
    for _, batch in batches:
        collector.take(batch)
    collector.close()
    return path


def test_all_that_many_workers_tell_is_in_the_recording(
    batches: list[tuple[int, bytes]], collected: Path
) -> None:
    recording = Recording.open(collected)

    store = recording.store
    assert sum(store.rows(name) for name in TABLES.values()) == sum(rows for rows, _ in batches)
    assert store.rows("run") == TASKS
    assert sum(origin.batches for origin in store.origins) == len(batches)
    assert not any(origin.lost for origin in store.origins)
    assert (recording.timeline.runs["seen"] == 1).all()
    assert recording.stages()["wall_s"].sum() == pytest.approx(recording.wall)


def test_what_does_not_arrive_of_many_workers_is_counted(
    batches: list[tuple[int, bytes]],
) -> None:
    gone = range(5, len(batches) // 2, 10)
    store = Store()
    for batch in merge(batch for i, (_, batch) in enumerate(batches) if i not in gone):
        assert store.add(batch)

    assert sum(origin.lost for origin in store.origins) == len(gone)
    assert sum(origin.batches for origin in store.origins) == len(batches) - len(gone)


class Pauses(threading.Event):
    """What a collector pauses with: a batch comes each 10 ms of it, and one when it writes."""

    def __init__(self, collector: Collector, batches: list[bytes]) -> None:
        super().__init__()
        self._collector, self._batches = collector, batches[::-1]
        self.all_came = threading.Event()
        #: how many it wrote at once
        self.lots: list[int] = []

    def write(self, lot: list[bytes]) -> None:
        self.lots.append(len(lot))
        self._come()

    def wait(self, timeout: float | None = None) -> bool:
        for _ in range(round(100 * (timeout or 0))):
            self._come()
        return self.is_set()

    def _come(self) -> None:
        if self._batches:
            self._collector.take(self._batches.pop())
        else:
            self.all_came.set()


def test_the_batches_of_a_crowd_are_gathered_for_longer(
    batches: list[tuple[int, bytes]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def lots(crowd: int) -> list[int]:
        monkeypatch.setattr(collecting, "CROWD", crowd)
        collector = Collector(tmp_path / f"{crowd}.stageprof")
        first, *others = (batch for _, batch in batches)
        pauses = Pauses(collector, others)
        monkeypatch.setattr(collector, "_over", pauses)
        monkeypatch.setattr(collector, "_keep", pauses.write)
        collector.take(first)
        assert pauses.all_came.wait(60)
        collector.close()
        return pauses.lots

    few, many = lots(10**6), lots(10)

    assert sum(few) == sum(many) == len(batches)
    assert max(many) > 2 * max(few)


# -- readers --------------------------------------------------------------------------------------

ODD_KEYS = [
    ("x-1", 0), ("x-1", 1, 2), "x-1", "inc-2", ("it's", 1), ('say "it\'s"', 2), ("back\\slash", 1),
    ("y" * 2000, 1), ("y" * 1000, 1), "('x-1', 0)", "(1", 7, b"bytes", None, (1, "x"), (), ("",),
    (("x-1", 0), 1), ("name\nline", 1), ("\u202ename", 1), ("naïve", 1), "x" * 3000, 1.5, "12",
]  # fmt: skip


def test_the_layer_of_each_key_is_that_of_its_text() -> None:
    keys = KeyList()
    packed = [msgspec.msgpack.encode(key) for key in ODD_KEYS]
    keys.add(pack_keys(packed), len(packed))
    keys.add(pack_keys(packed[::-1]), len(packed))
    numbers = np.array([*range(2 * len(packed)), 3, 3, 1], np.int64)

    layered, texts = Layered(keys.parts(numbers), len(numbers)), keys.texts(numbers)

    assert layered.texts() == [layer_of(text) for text in texts]
    assert layered.chunked.tolist() == [text.startswith(("('", '("')) for text in texts]
    assert layered.names == list(dict.fromkeys(layered.texts()))
    assert layered.alone == set(texts).intersection(layered.names)
    assert layered.counts.sum() == len(numbers)
    assert text_of_key("x-1") in layered.alone


def test_rows_of_a_place_are_those_that_a_search_finds() -> None:
    places = np.random.default_rng(0).integers(-1, 70_000, 5_000)
    rows = Rows(places)

    assert rows.numbers == np.unique(places[places >= 0]).tolist()
    for place in [*rows.numbers[:50], 69_999, 70_001, -1]:
        assert rows.of(place).tolist() == (
            np.flatnonzero(places == place).tolist() if place >= 0 else []
        )
    assert Rows(np.zeros(0, np.int64)).numbers == []


def test_a_recording_too_large_to_replay_has_its_savings_from_the_critical_path(
    collected: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "LARGEST", TASKS - 1)
    monkeypatch.setattr("stageprof_collectors.replay.fixed.Fixed.wall", None)
    recording = Recording.open(collected)

    low, high = recording.replay.saving(Change(lead=0.0))

    assert low == 0.0
    assert 0 < high <= recording.wall
    assert recording.replay.saving(Change(workers=2 * WORKERS)) == (0.0, 0.0)
    assert recording.replay.at_most(Stage.SCHEDULING) > 0
    assert recording.findings()
    assert not recording.diagnoses[DEFAULTS].failed


# -- cost against size ----------------------------------------------------------------------------


@contextmanager
def counted(calls: dict[str, dict[int, float]], name: str, size: int) -> Iterator[None]:
    """Note how many calls of functions are made within."""
    profile = cProfile.Profile()
    profile.enable()
    yield
    profile.disable()
    calls.setdefault(name, {})[size] = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]


def test_what_is_done_grows_no_faster_than_what_is_recorded(tmp_path: Path) -> None:
    """Calls are counted, not seconds: the same on every machine, however busy."""
    calls: dict[str, dict[int, float]] = {}
    for size in (1_000, 4_000, 16_000):
        path = tmp_path / f"{size}.stageprof"
        flood = [batch for _, batch in Flood(size, max(4, size // 400)).stream()]
        with counted(calls, "recording", size):
            merge(flood)
        collector = Collector(path)
        for batch in flood:
            collector.take(batch)
        collector.close()
        with counted(calls, "opening", size):
            recording = Recording.open(path)
        steps: dict[str, Callable[[], object]] = {
            "account": recording.stages,
            "findings": recording.findings,
        }
        for name, ask in steps.items():
            with counted(calls, name, size):
                ask()

    slopes = {name: slope(points) for name, points in calls.items()}
    assert all(found <= SLOPE for found in slopes.values()), slopes


@pytest.mark.nightly
@pytest.mark.alone
def test_seconds_grow_no_faster_than_what_is_recorded(tmp_path: Path) -> None:
    found = {tasks: measure(tasks, tmp_path) for tasks in (10_000, 100_000, 1_000_000)}

    names = ("opening_s", "account_s", "findings_s", "compare_s")
    slopes = {name: slope({n: f[name] for n, f in found.items()}) for name in names}
    assert all(steep <= SLOPE + 0.1 for steep in slopes.values()), slopes
    assert all(f["events"] == f["stored"] for f in found.values())
    assert found[1_000_000]["bytes_per_task"] < 45


def test_the_slope_of_what_doubles_with_size_is_one() -> None:
    assert slope({10: 3.0, 100: 30.0, 1000: 300.0}) == pytest.approx(1.0)
    assert slope({10: 1.0, 100: 100.0}) == pytest.approx(2.0)
    assert slope({1: 5.0, 10: 1.0, 100: 10.0}, least=10) == pytest.approx(1.0)
    assert math.isnan(slope({10: 1.0}))


def test_the_picture_names_its_lines_as_text() -> None:
    drawn = loglog([Line("open <b>", {10: 0.5, 1000: 20.0})], "tasks", "seconds")

    assert "open &lt;b&gt;" in drawn
    assert drawn.count("<circle") == 2


def test_a_file_of_ten_million_tasks_may_be_read_whole() -> None:
    flood = Flood(8_000, 4)
    store = Store()
    for batch in merge(batch for _, batch in flood.stream()):
        store.add(batch)

    assert store.bytes / flood.tasks * 10_000_000 < MAX_READ
