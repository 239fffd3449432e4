"""The tree of stacks of one ring: whole, bounded, and each place told before the looks there."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import dask
import pytest

from profiles.stacks_made import stack_through
from stageprof_runtime import process, tree
from stageprof_runtime.event import FLAME, NODE, SAMPLE
from stageprof_runtime.ring import Ring
from stageprof_runtime.stem import frames_of
from stageprof_runtime.tree import FILE, NAME, Tree, described, spots

#: A file of Dask's, and one of the user's.
LIBRARY = str(Path(str(dask.__file__)).parent / "base.py")
USER = "/home/u/etl.py"


def seen(tree: Tree, *names: str, ns: int = 10) -> None:
    stack = spots(stack_through(*((name, USER) for name in names)))
    tree.look(3, "", "python", stack, ns)


def names(frames: Any) -> list[str]:
    return [described(spot)[0] for spot in spots(frames)]


def kinds(rows: list[tuple[Any, ...]], kind: int) -> list[tuple[Any, ...]]:
    return [row[1:] for row in rows if row[0] == kind]


def test_equal_stacks_are_one_place_whose_looks_are_summed() -> None:
    tree = Tree()
    for _ in range(3):
        seen(tree, "main", "load")
    seen(tree, "main", "save")
    rows = tree.take(99)
    assert kinds(rows, NODE) == [
        (0, -1, "main", USER, 2),
        (1, 0, "load", USER, 2),
        (2, 0, "save", USER, 2),
    ]
    assert kinds(rows, FLAME) == [
        (99, 3, "", "python", 1, 3, 30),
        (99, 3, "", "python", 2, 1, 10),
    ]


def test_a_place_is_told_once_and_before_the_looks_there() -> None:
    tree = Tree()
    seen(tree, "main")
    first = tree.take(1)
    seen(tree, "main", "load")
    second = tree.take(2)
    assert [row[0] for row in first] == [NODE, FLAME]
    assert [row[:2] for row in second] == [(NODE, 1), (FLAME, 2)]
    assert tree.take(3) == []


def test_the_users_frames_have_the_line_that_runs_and_others_their_first() -> None:
    code = "def {}():\n    x = 1\n    inner()\n"
    found: list[Any] = []
    for file in (USER, LIBRARY):
        scope: dict[str, Any] = {"inner": lambda: found.append(sys._getframe(1))}
        exec(compile(code.format("run"), file, "exec"), scope)
        scope["run"]()
    ours, theirs = (described(spots([frame])[0]) for frame in found)
    # The frames have ended: they stand at the line of their call.
    assert (ours[2], theirs[2]) == (3, 1)


def test_one_function_at_two_lines_is_two_places_of_the_users_and_one_of_a_librarys() -> None:
    code = "def run(inner):\n    inner()\n    inner()\n"
    for file, places in ((USER, 2), (LIBRARY, 1)):
        tree, scope = Tree(), dict[str, Any]()
        exec(compile(code, file, "exec"), scope)
        scope["run"](lambda t=tree: t.place(spots([sys._getframe(1)])))
        assert len(tree) == places


def test_a_full_tree_cuts_stacks_where_they_leave_it_and_says_how_many() -> None:
    tree = Tree(most=2)
    seen(tree, "main", "load")
    seen(tree, "main", "other", "inner")
    seen(tree, "stranger")
    rows = tree.take(5)
    assert len(tree) == 2
    assert [row[4] for row in kinds(rows, FLAME)] == [1, 0, -1]
    assert kinds(rows, SAMPLE) == [(5, "stacks.cut", 2.0)]


def test_a_deep_stack_is_cut_at_its_inner_end() -> None:
    tree = Tree(depth=3)
    seen(tree, "a", "b", "c", "d", "e")
    rows = tree.take(5)
    assert [row[2] for row in kinds(rows, NODE)] == ["a", "b", "c"]
    assert kinds(rows, SAMPLE) == [(5, "stacks.cut", 1.0)]


def test_our_own_wrappers_are_left_out_unless_they_run() -> None:
    ours = str(Path(str(process.__file__)).parent / "shield.py")
    stack = stack_through(("main", USER), ("shielded", ours), ("load", USER))
    assert names(stack) == ["main", "load"]
    stack = stack_through(("main", USER), ("shielded", ours))
    assert names(stack) == ["main", "shielded"]


def test_names_without_end_are_cut() -> None:
    (spot,) = spots(stack_through(("f" * 1000, "/" + "x" * 1000)))
    name, file, _ = described(spot)
    assert (len(name), len(file)) == (NAME, FILE)


def test_every_recording_of_a_process_gets_all_places() -> None:
    early, late = Ring(), Ring()
    leave = process.join("client", early, [])
    stack = spots(stack_through(("main", USER), ("load", USER)))
    process.EMIT.flame("client", 3, "", "python", stack, 10)
    assert len(kinds(early.take(), NODE)) == 2
    leave_too = process.join("client", late, [])
    process.EMIT.flame("client", 3, "", "python", stack, 10)
    leave()
    leave_too()
    assert [row[0] for row in early.take()] == [FLAME]
    assert [row[0] for row in late.take()] == [NODE, NODE, FLAME]


def test_places_stay_when_the_ring_is_full() -> None:
    ring = Ring(4)
    for i in range(20):
        ring.emit((SAMPLE, i, "x", 1.0))
    ring.flame(3, "", "python", spots(stack_through(("main", USER))), 10)
    assert [row[0] for row in ring.take()][-2:] == [NODE, FLAME]


def test_a_code_made_anew_for_each_task_is_the_same_function(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tree, "CODES", 4)
    made = Tree()
    for _ in range(20):
        seen(made, "main")
    assert len(tree._codes) <= 4
    assert len(tree._kept) <= 4
    assert len(kinds(made.take(1), NODE)) == 1


def test_functions_without_end_are_one_when_so_many_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = stack_through(("known", USER))
    spots(known)
    monkeypatch.setattr(tree, "KNOWN", len(tree._spots))
    found = {spots(stack_through((f"made_{i}", USER)))[0] for i in range(20)}
    assert [described(spot)[0] for spot in found] == ["others"]
    assert names(known) == ["known"]


def test_looks_at_functions_that_are_known_make_nothing_for_the_garbage_collector() -> None:
    """It would look at all young objects of the user's the sooner: lists of millions, perhaps."""
    tree, frames = Tree(), frames_of(sys._getframe())
    tree.look(3, "", "python", spots(frames), 10)
    stack = spots(frames)
    gc.collect()
    gc.disable()
    before = gc.get_count()[0]
    tree.look(3, "", "python", stack, 10)
    for name in range(50):
        tree.place([*stack, *spots(frames)[: name % 20]])
    made = gc.get_count()[0] - before
    gc.enable()
    assert made < 10


def test_a_cleared_ring_begins_anew() -> None:
    ring = Ring()
    stack = spots(frames_of(sys._getframe()))
    ring.flame(3, "", "python", stack, 10)
    ring.clear()
    assert ring.take() == []
    ring.flame(3, "", "python", stack, 10)
    assert kinds(ring.take(), NODE)[0][:2] == (0, -1)
