"""What is recorded and judged of a test, whatever kind of test it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stageprof
from pytest_plugin.running import WORK, Ended, run_tests
from stageprof.testing import recorder

EVERYTHING = f"""
import asyncio
import unittest
import pytest
{WORK}
calls, tries = [], []

@pytest.fixture
def counted():
    calls.append("set up")

@pytest.mark.stageprof(repeat=3)
def test_kept(counted):
    calls.append("called")
    go()

def test_calls():
    assert calls == ["set up", "called", "called", "called"]

@pytest.mark.stageprof(repeat=3, max_wall=0, max_stage={{"execution": "0.01%", "serialization": 9}})
def test_over():
    go()

@pytest.mark.stageprof(max_wall=0)
def test_fails():
    go()
    assert 1 == 2

@pytest.mark.stageprof(max_wall=0)
def test_skips():
    go()
    pytest.skip("not today")

@pytest.mark.stageprof(max_wall=0)
@pytest.mark.xfail
def test_expected():
    go()

@pytest.mark.flaky(reruns=1)
@pytest.mark.stageprof(repeat=2)
def test_again():
    go()
    tries.append(1)
    assert len(tries) > 1

@pytest.mark.stageprof
@pytest.mark.parametrize("x", ["../../up", "nul\\x00", "a" * 300, "[red]x"])
def test_named(x):
    go(1)

@pytest.mark.stageprof(repeat=2, max_wall=60)
class TestCase(unittest.TestCase):
    def test_kept(self):
        go()

    @pytest.mark.stageprof(max_wall=0)
    def test_over(self):
        go()

class TestAsync(unittest.IsolatedAsyncioTestCase):
    @pytest.mark.stageprof(repeat=2, max_wall=0)
    async def test_over(self):
        await asyncio.sleep(0)
        go()

    @pytest.mark.stageprof(repeat=2)
    async def test_fails(self):
        go()
        raise KeyError("mine")

@pytest.mark.stageprof(repeat=2, max_stage={{"execution": 0}})
def test_blocks(stageprof_recorder):
    go()
    with stageprof_recorder("one"):
        go()
    with stageprof_recorder("two") as region:
        go(2)
    assert len(region.recording.tasks()) == len(stageprof_recorder.recording.tasks()) == 2

@pytest.mark.stageprof(max_wall="1h")
def test_no_block(stageprof_recorder):
    go()

def test_unmarked():
    go()
"""


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    return run_tests(tmp_path_factory.mktemp("everything"), EVERYTHING, "--stageprof")


def test_only_a_test_beyond_its_limits_fails_for_it(ended: Ended) -> None:
    """Failed, skipped and expected failures stay what they are."""
    names = {n: o for n, o in ended.outcomes.items() if not n.startswith("test_named")}

    assert ended.status == 1
    assert names == {
        "test_kept": "PASSED",
        "test_calls": "PASSED",
        "test_over": "FAILED",
        "test_fails": "FAILED",
        "test_expected": "XFAIL",
        "test_again": "PASSED",
        "TestCase::test_kept": "PASSED",
        "TestCase::test_over": "FAILED",
        "TestAsync::test_over": "FAILED",
        "TestAsync::test_fails": "FAILED",
        "test_blocks": "FAILED",
        "test_no_block": "FAILED",
        "test_unmarked": "PASSED",
    }
    assert "1 skipped" in ended.out


def test_there_is_a_recording_for_each_test_and_repeat(ended: Ended) -> None:
    """Not for a test that skipped itself or has no marker; a second try replaces the first."""
    names = [name for name in ended.recordings() if "test_named" not in name]

    assert names == [
        "test_it.py-TestAsync-test_fails/1.stageprof",
        "test_it.py-TestAsync-test_over/1.stageprof",
        "test_it.py-TestAsync-test_over/2.stageprof",
        "test_it.py-TestCase-test_kept/1.stageprof",
        "test_it.py-TestCase-test_kept/2.stageprof",
        "test_it.py-TestCase-test_over/1.stageprof",
        "test_it.py-TestCase-test_over/2.stageprof",
        "test_it.py-test_again/1.stageprof",
        "test_it.py-test_again/2.stageprof",
        "test_it.py-test_blocks-one/1.stageprof",
        "test_it.py-test_blocks-one/2.stageprof",
        "test_it.py-test_blocks-two/1.stageprof",
        "test_it.py-test_blocks-two/2.stageprof",
        "test_it.py-test_expected/1.stageprof",
        "test_it.py-test_fails/1.stageprof",
        "test_it.py-test_kept/1.stageprof",
        "test_it.py-test_kept/2.stageprof",
        "test_it.py-test_kept/3.stageprof",
        "test_it.py-test_over/1.stageprof",
        "test_it.py-test_over/2.stageprof",
        "test_it.py-test_over/3.stageprof",
    ]


def test_the_recording_of_a_test_that_failed_says_so(ended: Ended) -> None:
    """Whoever compares it must not take it for a fast one; what is over a limit ended well."""
    files = (ended.folder / "stageprof-recordings").rglob("*.stageprof")
    failed = {f.parent.name[:-9]: stageprof.open(f).failures.ended for f in files}

    said = {name: end.said for name, end in failed.items() if end is not None}
    assert said == {
        "test_it.py-test_fails": "the function ended with AssertionError",
        "test_it.py-TestAsync-test_fails": "the function ended with KeyError",
    }


def test_every_parameter_has_recordings_of_its_own_inside_the_folder(ended: Ended) -> None:
    folders = {Path(name).parts for name in ended.recordings() if "test_named" in name}

    assert len(folders) == 4
    assert all(len(parts) == 2 for parts in folders)
    assert all(len(parts[0]) < 80 for parts in folders)


def test_a_recording_is_called_like_its_test(ended: Ended) -> None:
    """And holds what the test computed, once."""
    [path] = ended.folder.glob("stageprof-recordings/test_it.py-test_kept-*/2.stageprof")
    recording = stageprof.open(path)

    assert recording.complete
    assert recording.store.header["label"] == "test_it.py::test_kept"
    assert len(recording.tasks()) == 4


def test_a_failure_says_stage_layer_line_limit_and_what_was_seen(ended: Ended) -> None:
    first, second, *rest = ended.failure("test_over").splitlines()
    line = 1 + next(i for i, text in enumerate(EVERYTHING.splitlines()) if "compute(*" in text)

    assert first.startswith("stageprof: the test took ")
    assert "the limit is 0 s" in first
    assert second.startswith("stageprof: execution took ")
    assert "the limit is 0.01 %" in second
    assert second.endswith(f" in execution compute of layer work, made at test_it.py:{line}")
    assert rest[0].startswith("  judged by the median of 3 recordings (")
    assert rest[1].startswith("  stageprof show --findings /")
    assert len(rest) == 2


def test_no_traceback_shows_our_frames(ended: Ended) -> None:
    # An event loop in its debug mode, as unittest has it, logs whose callbacks were slow.
    shown = [line for line in ended.out.splitlines() if "Executing <" not in line]
    assert "/stageprof/" not in "\n".join(shown)
    assert "assert 1 == 2" in ended.failure("test_fails")


def test_each_block_is_judged_by_itself(ended: Ended) -> None:
    lines = ended.failure("test_blocks").splitlines()

    assert [line.split(" took ")[0] for line in lines if " took " in line] == [
        "stageprof: block one: execution",
        "stageprof: block two: execution",
    ]


def test_limits_without_a_recording_are_not_kept_silently(ended: Ended) -> None:
    assert "the limits cannot be judged (nothing was recorded)" in ended.failure("test_no_block")


def test_the_table_has_a_line_for_each_recorded_test(ended: Ended) -> None:
    """With its repeats; what is beyond a limit is below it."""
    table = [line.split() for line in ended.table.splitlines()]
    kept = next(words for words in table if words[-1].endswith("py::test_kept"))
    over = next(i for i, words in enumerate(table) if words[-1].endswith("py::test_over"))

    assert table[0] == ["wall", "runs", "most", "of", "it", "test"]
    assert kept[2] == "3"
    assert table[over + 1] == ["over:", "wall", "time,", "execution"]
    assert "test_unmarked" not in ended.table
    assert "test_skips" not in ended.table
    assert ended.table.count("test_again") == 1
    assert max(map(len, ended.table.splitlines())) <= 80


def test_a_recording_that_cannot_be_made_fails_no_test() -> None:
    """As with trio, whose loop is none of asyncio's."""

    class Region:
        async def __aenter__(self) -> None:
            raise RuntimeError("no running event loop")

    made: Any = type("Made", (), {"__call__": lambda _: Region(), "problem": ""})()
    entering = recorder._async_region(made).__aenter__()
    with pytest.raises(StopIteration):
        entering.send(None)
    assert "no running event loop" in made.problem
