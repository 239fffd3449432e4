"""A regression is followed down to the object, in words that people can act on."""

from __future__ import annotations

from dataclasses import replace

from compare.made import DUMP, JOIN, against, run, runs
from stageprof.renderers import compare_json, compare_markdown, compare_terminal
from stageprof_collectors.account.groups import Row
from stageprof_collectors.comparison.circumstances import program
from stageprof_collectors.comparison.matching import matched, now_at
from stageprof_collectors.comparison.measured import (
    NOBODY,
    Cell,
    Group,
    Held,
    Measured,
    Thing,
    grouped,
)
from stageprof_collectors.comparison.sentences import blamed, line
from stageprof_runtime.stage import Stage

SENT = Cell(Stage.SERIALIZATION, "task.dump", Group("scored", "etl.py", 43))
LOOKUP = Thing("lookup", "dict", "etl.py")


def embedded(each: Measured, tasks: int, seconds: float) -> Measured:
    return replace(each, objects={LOOKUP: Held(41, "scored", 8_000_000, 1, tasks, seconds)})


def test_an_object_that_travels_more_often_is_named() -> None:
    """The sentence of a reviewer: what, where, how often, for whom."""
    base = [embedded(each, 1, 0.1) for each in runs(seed=1)]
    head = [embedded(each, 400, 3.2) for each in runs(seed=2, more={SENT: 3.1})]
    (found,) = against(base, head).blames

    assert found.stage == "serialization"
    assert (found.steps[0].name, found.layers[0].name) == ("task.dump", "scored")
    assert (found.lines[0].file, found.lines[0].line) == ("etl.py", 43)
    assert blamed(found).endswith(
        "`lookup` (etl.py:41) is now embedded in 400 tasks of `scored` rather than 1"
    )


def test_an_object_that_came_is_named() -> None:
    head = [embedded(each, 400, 3.1) for each in runs(seed=2, more={SENT: 3.1})]
    (found,) = against(runs(seed=1), head).blames

    assert "`lookup` (etl.py:41), 8.0 MB, is now embedded in 400 tasks of `scored`" in blamed(found)


def test_without_an_object_the_step_and_layer_are_named() -> None:
    (found,) = against(runs(seed=1), runs(seed=2, more={DUMP: 0.1})).blames

    assert "graph.dump for `join` (etl.py:30) takes" in blamed(found)
    assert 0.9 < found.layers[0].share < 1.1


def test_a_slower_wall_time_is_followed_into_its_stage() -> None:
    """Each stage is slower by too little to be called so, the whole is not."""
    base = [run({cell: s * (1 + 0.001 * i) for cell, s in each.cells.items()}) for i, each in
            enumerate([run()] * 7)]  # fmt: skip
    head = [replace(each, wall_s=each.wall_s + 0.2) for each in base]
    found = against(base, head)

    assert [t.name for t in found.times if t.judged == "worse"] == ["wall"]
    assert len(found.blames) == 1


def test_what_is_slower_outside_dask_blames_no_stage() -> None:
    """The program waits for something of its own before it calls Dask."""
    own = Cell(Stage.OUTSIDE, "", NOBODY)
    found = against(runs(seed=1, more={own: 0.5}), runs(seed=2, more={own: 1.0}))
    (why,) = found.blames

    assert why.stage == Stage.OUTSIDE
    assert "code of yours" in blamed(why)
    assert (why.steps, why.layers, why.lines) == ((), (), ())
    for text in (compare_terminal.text(found), compare_markdown.text(found)):
        assert "outside +" in text
        assert "no layer" not in text


def test_lines_that_moved_are_the_same_lines() -> None:
    """Ten lines were put in above: no layer came, none went."""
    base = runs(seed=1)
    head = [_moved(each, 10) for each in runs(seed=2, more={JOIN: 0.1})]
    found = against(base, head)
    part = found.blames[0].layers[0]

    assert (part.name, part.line, part.was) == ("join", 40, 30)
    assert "etl.py:40, was 30" in blamed(found.blames[0])
    assert part.share < 1.3


def _moved(each: Measured, lines: int) -> Measured:
    cells = {
        cell._replace(group=cell.group._replace(line=cell.group.line + lines)): seconds
        for cell, seconds in each.cells.items()
    }
    return replace(each, cells=cells)


def test_a_new_call_beside_others_leaves_them_matched() -> None:
    """Of three lines of one prefix one is new; the two others keep their places."""

    def at(*lines: int) -> list[Measured]:
        cells = {Cell(Stage.EXECUTION, "compute", Group("f", "e.py", n)): 1.0 for n in lines}
        return [run(cells)]

    assert now_at(at(10, 20), at(10, 15, 20)) == {}
    assert now_at(at(10, 20), at(12, 22)) == {
        Group("f", "e.py", 10): Group("f", "e.py", 12),
        Group("f", "e.py", 20): Group("f", "e.py", 22),
    }
    (renamed,) = matched(at(10, 20), at(12, 22))
    assert {cell.group.line for cell in renamed.cells} == {10, 20}


def test_a_new_call_in_the_place_of_another_is_told_by_what_it_does() -> None:
    """The old call, of 80 ms, went from line 9 to 10; a new one of 40 ms stands in its place."""

    def at(**lines: float) -> list[Measured]:
        groups = {Group("f", "e.py", int(n[1:])): s for n, s in lines.items()}
        cells = {Cell(Stage.EXECUTION, "compute", group): s for group, s in groups.items()}
        return [replace(run(cells), tasks=dict.fromkeys(groups, 8))]

    assert now_at(at(_9=0.08), at(_9=0.04, _10=0.08)) == {
        Group("f", "e.py", 9): Group("f", "e.py", 10),
        Group("f", "e.py", 10): Group("f", "e.py", 9),  # the new one is called as nobody is
    }
    assert now_at(at(_9=0.04, _10=0.08), at(_9=0.08)) == {
        Group("f", "e.py", 10): Group("f", "e.py", 9)
    }
    three = now_at(at(_20=0.2, _40=1.0), at(_20=0.2, _30=0.2, _41=1.0))
    assert three == {Group("f", "e.py", 40): Group("f", "e.py", 41)}


def test_a_new_call_in_the_place_of_another_keeps_what_is_its_own() -> None:
    """Both were taken for one, which had the tasks, bytes and seconds of the smaller."""
    old, new = Group("f", "e.py", 9), Group("f", "e.py", 10)

    def at(**groups: tuple[float, int]) -> Measured:
        lines = {Group("f", "e.py", int(name[1:])): told for name, told in groups.items()}
        cells = {Cell(Stage.EXECUTION, "compute", g): s for g, (s, _) in lines.items()}
        read = {group: nbytes for group, (_, nbytes) in lines.items()}
        return replace(run(cells), tasks=dict.fromkeys(lines, 8), read=read)

    before, after = at(_9=(0.08, 500)), at(_9=(0.04, 5), _10=(0.08, 500))
    (found,) = matched([before], [after])
    assert found.read == {old: 500, new: 5}
    assert {cell.group: s for cell, s in found.cells.items()} == {old: 0.08, new: 0.04}
    assert sum(found.cells.values()) == sum(after.cells.values())


def test_a_new_call_in_the_place_of_another_is_blamed_at_its_own_line() -> None:
    def at(**seconds: float) -> list[Measured]:
        groups = {Group("f", "e.py", int(name[1:])): s for name, s in seconds.items()}
        cells = {Cell(Stage.EXECUTION, "compute", group): s for group, s in groups.items()}
        return [replace(run(cells), tasks=dict.fromkeys(groups, 8))] * 7

    (found,) = against(at(_9=0.8), at(_9=0.4, _10=0.8)).blames
    assert "e.py:9" in blamed(found)
    assert "was" not in line(found.layers[0])
    parts = compare_json.document(against(at(_9=0.8), at(_9=0.4, _10=0.8)))["blame"][0]["layers"]
    assert [(part["line"], part["was"]) for part in parts if not part["before_s"]] == [(9, 0)]


def test_blocks_of_a_test_with_numbers_for_names_are_programs_of_their_own() -> None:
    """The number was taken for a line, and both had one baseline."""
    labels = [f"tests/t.py::test::{number}" for number in (100, 10_000)]
    assert [program({"label": label}) for label in labels] == labels
    assert (
        program({"program": "etl.py", "label": "Block at etl.py:12"}) == "etl.py, Block at etl.py"
    )


def test_a_step_and_its_seconds_are_those_of_the_layer_that_is_named() -> None:
    """Of three layers one waits longer, and another is what takes longer: its seconds were told."""
    names = {name: Group(name, "e.py", i) for i, name in enumerate("ABC", 1)}
    cells = [("compute", "A"), ("wait.thread", "B"), ("wait.thread", "C")]
    was, now = (
        run(
            {
                Cell(Stage.EXECUTION, step, names[n]): s
                for (step, n), s in zip(cells, t, strict=True)
            }
        )
        for t in ((10.0, 1.0, 0.0), (12.0, 2.5, 1.5))
    )
    found = against([was] * 7, [now] * 7, floor=0.0)
    (said,) = [blamed(each) for each in found.blames if each.stage == Stage.EXECUTION]
    assert "compute for `A` (e.py:1) takes 12.0 s, it was 10.0 s" in said


def test_a_cell_of_a_notebook_is_the_same_whatever_its_number() -> None:
    """It has another each time that it runs."""
    rows = [Row(f"double-{i}", "double", f"/home/u/In [{i}]", 3) for i in (4, 12)]
    assert {grouped(row) for row in rows} == {Group("double", "In [*]", 3)}
