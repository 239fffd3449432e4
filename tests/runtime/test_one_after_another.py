"""A process with several recordings: what one had to tell is not told by the next."""

from __future__ import annotations

import warnings
from pathlib import Path

import dask
import pytest
from dask import delayed

import planted
import stageprof
from stageprof_collectors.storage.shipment import decode
from stageprof_runtime import guard, patch, rounds, tree
from stageprof_runtime.assignment import module_code
from stageprof_runtime.clock import now_ns
from stageprof_runtime.event import Place
from stageprof_runtime.guard import Watch
from stageprof_runtime.handover import Handover
from stageprof_runtime.probes import objects
from stageprof_runtime.ring import Ring
from stageprof_runtime.shipper import Shipper


def shipper() -> Shipper:
    """Of a session that begins now."""
    return Shipper(Place("client", "here", 1, "client", now_ns()), Ring(), lambda _: None)


def test_a_wrapper_that_is_gone_is_told_of_by_its_own_recording_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch = Watch("gone", wrapper=True)
    watch.disabled = "failed 10 times"
    monkeypatch.setitem(patch.wrapped, "gone", watch)
    mine = shipper()
    watch.ended = now_ns()
    later = shipper()
    assert b"gone" in b"".join(mine.drain())
    assert b"gone" not in b"".join(later.drain())


def test_what_a_hook_took_before_a_session_is_not_the_sessions() -> None:
    watch = Watch("shared")
    watch.calls = 1_000
    watch.measured(5_000)
    mine = shipper()
    mine.watches = {"shared": watch}
    mine.drain()
    watch.calls += 10
    [batch] = mine.drain()
    assert b"shared" in decode(batch).cost
    calls, ns = mine._since(watch)
    assert calls == 10
    assert ns == 10 * 5_000


def test_failures_after_the_end_of_a_recording_are_not_those_of_the_next() -> None:
    Watch("late").failed(RuntimeError())
    assert "late" in guard.untold
    with stageprof.profile() as prof:
        dask.compute(delayed(planted.identity)(1), scheduler="sync")
    assert prof.recording.coverage()["dropped"] == {}


def test_a_check_within_a_recording_leaves_its_costs_alone() -> None:
    with stageprof.profile():
        dask.compute([delayed(planted.identity)(i) for i in range(10)], scheduler="sync")
        before = list(objects.cost)
        Handover(lambda _: True)
        assert before[0] > 0
        assert objects.cost == before


def test_a_module_that_was_edited_is_read_anew(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text("x = 1\n")
    first = module_code(str(file))
    file.write_text("y = 1\n\n\nx = 22\n")
    second = module_code(str(file))
    assert first is not None
    assert second is not None
    assert first.co_names == ("x",)
    assert second.co_names == ("y", "x")


def test_what_python_has_warned_of_in_a_module_is_not_said_again(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text('for x in "\\d":\n    x.compute()\n')
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert module_code(str(file)) is not None
        assert rounds.verdict(file.read_text(), 2) == rounds.APART
    assert said == []


def test_where_no_more_functions_are_kept_those_of_the_user_are_none_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tree, "KNOWN", 0)
    for name in ("_spots", "_texts", "_codes"):
        monkeypatch.setattr(tree, name, {})
    monkeypatch.setattr(tree, "_ours", set())
    tree._remember(Shipper.start.__code__)
    assert not tree._ours
