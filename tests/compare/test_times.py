"""What is called slower, and what is not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from compare.made import BUILD, DUMP, JOIN, LOAD, USUAL, against, judged, run, runs
from stageprof.renderers import compare_json
from stageprof.renderers.compare_junit import text as junit_text
from stageprof.renderers.compare_markdown import text as markdown_text
from stageprof.renderers.compare_notebook import html as notebook_html
from stageprof.renderers.compare_terminal import text as terminal_text
from stageprof_collectors.comparison import sentences
from stageprof_collectors.comparison.counts import Judged
from stageprof_collectors.comparison.measured import Cell, Group, Measured
from stageprof_runtime.errors import UsageError
from stageprof_runtime.stage import Stage
from stageprof_ui.columns import judgement


def test_the_same_program_is_no_regression() -> None:
    """Forty times seven against seven, with the noise of a CI runner."""
    alarms = [
        against(runs(seed=i, noise=0.05), runs(seed=1000 + i, noise=0.05)).regressions
        for i in range(40)
    ]

    assert sum(map(bool, alarms)) <= 2


def test_a_stage_that_is_a_tenth_slower_is_found_and_only_that() -> None:
    found = against(runs(seed=1), runs(seed=2, more={DUMP: 0.02}))

    assert judged(found)["serialization"] == Judged.WORSE
    assert [n for n, said in judged(found).items() if said == Judged.WORSE] == ["serialization"]
    assert found.times[3].effect.low > 1.05
    assert found.regressions == 1


def test_a_stage_that_is_faster_is_no_regression() -> None:
    found = against(runs(seed=1, more={DUMP: 0.05}), runs(seed=2))

    assert judged(found)["serialization"] == Judged.BETTER
    assert (found.regressions, found.improvements > 0) == (0, True)


def test_a_part_is_seen_where_its_stage_varies_by_more() -> None:
    """Loading varies by a third; joining, a sixth of the stage, takes twice as long."""
    noisy = {LOAD: 2.4}
    base = [_swinging(run({**USUAL, **noisy, JOIN: 0.4}), i) for i in range(7)]
    head = [_swinging(run({**USUAL, **noisy, JOIN: 0.8}), i + 3) for i in range(7)]
    found = against(base, head)
    execution = found.times[6]

    assert execution.judged == Judged.WORSE
    assert [part.what for part in execution.parts] == [JOIN]
    # Every face says by how much the parts changed, not the whole, which says nothing.
    assert sentences.by(execution) == sentences.percent(1 + 0.4 / execution.before_s)
    assert sentences.interval(execution) == ""
    assert found.blames[0].layers[0].name == "join"


def _swinging(each: Measured, i: int) -> Measured:
    """Its loading takes up to a third longer, and its joining a little."""
    swing, little = 0.8 * (i % 5) / 4, 0.004 * (i % 3)
    cells = {**each.cells, LOAD: each.cells[LOAD] + swing, JOIN: each.cells[JOIN] + little}
    return run(cells)


def waiting(each: Measured, seconds: float) -> Measured:
    """Serialization that waits so long, beside what it computes."""
    cells = {**each.cells, DUMP: each.cells[DUMP] + seconds}
    return run(cells, waits={Stage.SERIALIZATION: 0.002 + seconds})


def test_waiting_is_seen_where_computing_varies_by_more() -> None:
    """A tenth of the stage more, all of it waiting, beneath a noise of 7 %."""
    found = against(
        [waiting(each, 0.0) for each in runs(seed=3, noise=0.07)],
        [waiting(each, 0.02) for each in runs(seed=4, noise=0.07)],
    )
    serialization = found.times[3]

    assert against(runs(seed=3, noise=0.07), runs(seed=4, noise=0.07)).regressions == 0
    assert serialization.judged == Judged.WORSE
    assert [part.what for part in serialization.parts] == [Stage.SERIALIZATION]
    assert found.blames[0].waiting_s == pytest.approx(0.02)
    assert found.blames[0].lines[0].line == 30
    assert "waiting" in sentences.blamed(found.blames[0])


def test_what_waits_rather_than_computes_is_no_regression_if_the_stage_is_no_slower() -> None:
    base = [waiting(each, 0.0) for each in runs(seed=3, noise=0.02)]
    head = [waiting(each, 0.02) for each in runs(seed=4, noise=0.02, more={DUMP: -0.03})]

    assert judged(against(base, head))["serialization"] != Judged.WORSE


def test_work_that_only_has_another_name_is_no_regression() -> None:
    """A layer was renamed: one part came, another went, the stage takes what it took."""
    renamed = Cell(JOIN.stage, JOIN.step, Group("merge", "etl.py", 30))
    found = against(runs(seed=1), runs(seed=2, more={JOIN: -0.6, renamed: 0.6}))

    assert judged(found)["execution"] == Judged.SAME


def test_a_change_below_the_floor_is_none() -> None:
    """It is beyond chance, but the user said that less than 15 % does not matter."""
    base, head = runs(seed=1), runs(seed=2, more={BUILD: 0.03})

    assert judged(against(base, head))["construction"] == Judged.WORSE
    assert judged(against(base, head, floor=0.15))["construction"] == Judged.SAME


def test_a_run_that_stood_still_hides_nothing() -> None:
    """A tenth slower, with noise of 2 %, in all of seven but one that is not."""
    for seed in range(20):
        base = runs(seed=seed, noise=0.02)
        head = runs(seed=100 + seed, noise=0.02, more={BUILD: 0.03})
        base[0] = run({**base[0].cells, BUILD: 0.6})

        assert judged(against(base, head))["construction"] == Judged.WORSE, seed


def test_a_run_that_stood_still_is_no_regression() -> None:
    base, head = runs(seed=1, noise=0.02), runs(seed=2, noise=0.02)
    head[:2] = [run({**each.cells, BUILD: 3.0}) for each in head[:2]]

    assert against(base, head).regressions == 0


def test_a_stage_that_hardly_takes_time_is_not_tested() -> None:
    """Three times of next to nothing is next to nothing."""
    order = Cell(Stage.SCHEDULING, "order", Group("", "", 0))
    found = against(runs(seed=1, more={order: 0.001}), runs(seed=2, more={order: 0.003}))
    scheduling = found.times[5]

    assert (scheduling.tested, scheduling.judged) == (False, Judged.UNKNOWN)
    assert found.regressions == 0


@pytest.mark.parametrize(("number", "why"), [(1, "one"), (4, "few"), (7, "")])
def test_times_of_few_recordings_are_shown_and_not_judged(number: int, why: str) -> None:
    found = against(runs(number, seed=1), runs(number, seed=2, more={JOIN: 0.5}))

    assert found.unjudged == why
    assert found.times[0].change_s > 0.4
    assert (found.regressions > 0) == (why == "")


def test_pairs_show_what_the_machines_mood_would_hide() -> None:
    """Each pair was recorded while the machine was as slow as it happened to be."""
    moods = [1.0, 1.5, 1.1, 1.4, 0.9, 1.6, 1.2, 1.3, 1.05, 1.45]
    few = [i % 3 * 0.0005 for i in range(10)]
    base = [run({c: s * m for c, s in USUAL.items()}) for m in moods]
    head = [
        run({c: s * m + (0.03 + e if c == JOIN else 0) for c, s in USUAL.items()})
        for m, e in zip(moods, few, strict=True)
    ]
    unpaired, paired = against(base, head), against(base, head, paired=True, floor=0.0)

    assert judged(unpaired)["execution"] == Judged.SAME
    assert paired.times[6].p < unpaired.times[6].p


def test_what_counts_as_no_change_is_learned_from_pairs() -> None:
    """By what days differ a tenth, in each of ten pairs, was no change."""
    moods = [1.0, 1.5, 1.1, 1.4, 0.9, 1.6, 1.2, 1.3, 1.05, 1.45]
    base, head = (
        [run({c: s * m * times for c, s in USUAL.items()}) for m in moods] for times in (1.0, 1.1)
    )
    assert judged(against(base, head, paired=True))["execution"] == Judged.WORSE
    assert judged(against(base, base, paired=True))["execution"] == Judged.SAME


def test_pairs_need_as_many_on_each_side() -> None:
    with pytest.raises(UsageError, match="pairs of 7 and 6 complete recordings"):
        against(runs(seed=1), runs(6, seed=2), paired=True)


def test_incomplete_recordings_do_not_count() -> None:
    broken = run(incomplete="recording incomplete: 3 events up to 1 s", file="half.stageprof")
    found = against([*runs(seed=1), broken], runs(seed=2))

    assert found.baseline.number == 7
    assert found.baseline.left_out == (("half.stageprof", broken.incomplete),)


def at(side: list[Measured], began_s: Iterable[float]) -> list[Measured]:
    return [replace(each, began_s=s) for each, s in zip(side, began_s, strict=True)]


IN_TURN = range(1, 15, 2), range(2, 16, 2)
APART = range(1, 8), range(8, 15)
FACES = (terminal_text, markdown_text, notebook_html, compare_json.text, junit_text)


def test_sides_that_were_not_recorded_in_turn_are_said_to_be_so_on_every_face() -> None:
    """A machine that got slower in between is no slower program."""
    base, head = runs(seed=1), runs(seed=2, more={LOAD: 0.3})
    turns, apart = (against(at(base, b), at(head, h)) for b, h in (IN_TURN, APART))

    assert (turns.in_turn, apart.in_turn) == (True, False)
    assert turns.regressions == apart.regressions > 0
    for face in FACES:
        said = " ".join(face(apart).split())
        assert "not recorded in turn" in said or '"in_turn": false' in said
        assert "not recorded in turn" not in " ".join(face(turns).split())
    assert "may be the machine" in sentences.drift(apart)
    assert judgement.facts(apart)["sides"].endswith("not recorded in turn")


def test_where_no_time_changed_it_is_said_in_four_words() -> None:
    base, head = runs(seed=1), runs(seed=2)
    found = against(at(base, APART[0]), at(head, APART[1]))
    assert (sentences.drift(found), sentences.sides(found)[-20:]) == ("", "not recorded in turn")


def test_an_order_by_lot_is_in_turn_and_few_runs_are_not() -> None:
    """Three runs of seven, then one of seven."""
    lot = np.random.default_rng(1).permutation(range(1, 15)).tolist()
    three, one = at(runs(21, seed=1), range(1, 22)), at(runs(seed=2), range(22, 29))

    assert against(at(runs(seed=1), lot[:7]), at(runs(seed=2), lot[7:])).in_turn is True
    assert against(three, one).in_turn is False
    assert against(runs(seed=1), runs(seed=2)).in_turn is None


@pytest.mark.parametrize("which", ["baseline", "candidate"])
def test_what_stopped_early_was_neither_fast_nor_slow(which: str) -> None:
    """Seven runs that failed half-way were 67 % faster."""
    said = "the block ended with ValueError"
    half = runs(seed=1, more={LOAD: -0.7}, failed=said, file="half.stageprof")
    mixed, whole = [*runs(seed=3), *half[:2]], runs(seed=2)
    found = against(*((mixed, whole) if which == "baseline" else (whole, mixed)))

    side = found.baseline if which == "baseline" else found.candidate
    assert side.left_out == (("half.stageprof", said),) * 2
    assert set(judged(found).values()) <= {Judged.SAME, Judged.UNKNOWN}
    with pytest.raises(UsageError, match=rf"recording of the {which} .*{said}"):
        against(*((half, whole) if which == "baseline" else (whole, half)))


def test_recordings_that_lost_events_count_only_if_all_did() -> None:
    lost = "2 batches of events lost"
    some = against([*runs(6, seed=1), *runs(1, seed=3, lost=lost)], runs(seed=2))
    every = against(runs(seed=1, lost=lost), runs(seed=2))

    assert (some.baseline.number, len(some.baseline.left_out)) == (6, 1)
    assert (every.baseline.number, len(every.baseline.left_out)) == (7, 0)


def test_a_side_without_a_complete_recording_is_bad_input() -> None:
    with pytest.raises(UsageError, match="no complete recording of the candidate"):
        against(runs(seed=1), [run(incomplete="recording incomplete")])


def test_the_change_of_a_stage_that_is_the_same_is_that_of_the_whole() -> None:
    """One small part was seen to change, the rest went the other way: it was that part's alone."""
    sure = Cell(Stage.EXECUTION, "compute", Group("sure", "etl.py", 50))
    apart = 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        base, head = (
            [
                run(
                    USUAL
                    | {
                        sure: took * random.lognormal(0, 0.001),
                        LOAD: (0.8 + more) * random.lognormal(0, 0.1),
                    }
                )
                for _ in range(8)
            ]
            for took, more in ((0.5, 0.0), (0.47, 0.1))
        )
        found = against(base, head)
        for time in found.times:
            if time.judged == Judged.SAME:
                assert time.change_s == pytest.approx(time.after_s - time.before_s)
                apart += time.name == "execution" and time.change_s > 0
    assert apart
