"""The diagnosis: rules are asked, what they found is ranked, and what fails harms nobody."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
import pytest

import stageprof
from findings.conftest import Only
from findings.crews import Crewed, side_by_side
from findings.made import SECOND, WALL_S, found, made, noting, rule
from named import plainly
from replay.handmade import CLIENT, LANE, HandMade, ns
from stageprof_collectors.findings.diagnosis import MOST, diagnose, examine
from stageprof_collectors.findings.finding import Finding, Severity, severity
from stageprof_collectors.findings.rule import Limit, Limits
from stageprof_collectors.findings.settings import Settings
from stageprof_collectors.storage.store import Store
from stageprof_runtime.batch import pack
from stageprof_runtime.event import BLOCK, MARK, Place
from stageprof_runtime.stage import Stage


def ids(findings: list[Finding]) -> list[str]:
    return [f.rule for f in findings]


# -- ranking ------------------------------------------------------------------------------


def test_findings_are_ranked_by_the_middle_of_their_saving_then_cost_then_name(only: Only) -> None:
    wide, narrow = found("wide", 0.0, 6.0), found("narrow", 2.0, 3.0)
    costly, alike = found("costly", 2.5, cost_s=9.0), found("alike", 2.0, 3.0)
    only(*(rule(f.rule, [f]) for f in (alike, narrow, wide, costly)))
    assert ids(diagnose(made())) == ["wide", "costly", "alike", "narrow"]


def test_one_cause_gives_one_finding_the_one_that_saves_most(only: Only) -> None:
    less, more = found("less", 1.0, cause="line:a:1"), found("more", 5.0, cause="line:a:1")
    only(rule("less", [less]), rule("more", [more]))
    assert ids(diagnose(made())) == ["more"]


def test_of_equal_savings_of_one_cause_the_costlier_stays(only: Only) -> None:
    cheap = found("a", 4.0, cause="x", cost_s=4.0)
    only(rule("a", [cheap]), rule("b", [replace(cheap, rule="b", cost_s=8.0)]))
    assert ids(diagnose(made())) == ["b"]


@pytest.mark.parametrize(("saving", "shown"), [(4.0, "precise"), (3.0, "broad")])
def test_the_more_precise_of_one_cause_is_shown_if_it_saves_about_as_much(
    saving: float, shown: str, only: Only
) -> None:
    """A rule says which rules it says more precisely; one that saves far less stays behind."""
    broad, precise = found("broad", 5.0, cause="x"), found("precise", saving, cause="x")
    better = replace(rule("precise", [precise]), instead_of=frozenset({"broad"}))
    only(rule("broad", [broad]), better)
    assert ids(diagnose(made())) == [shown]


def test_the_more_precise_is_as_grave_as_what_it_is_shown_for(only: Only) -> None:
    """Else it would be a note, and the run had nothing to fix."""
    broad = found("broad", 0.2, cause="x", severity=Severity.MODERATE)
    precise = found("precise", 0.2, cause="x", severity=Severity.NOTE)
    better = replace(rule("precise", [precise]), instead_of=frozenset({"broad"}))
    only(rule("broad", [broad]), better)
    (told,) = diagnose(made())
    assert (told.rule, told.severity) == ("precise", Severity.MODERATE)


def test_findings_without_a_cause_are_all_kept(only: Only) -> None:
    only(rule("a", [found("a", 4.0), found("a", 4.0)]))
    assert ids(diagnose(made())) == ["a", "a"]


def test_severity_follows_the_thresholds_that_are_set(only: Only) -> None:
    only(rule("a", [found("a", 3.0)]))  # 15 % of the run
    severities = [
        diagnose(made(), settings)[0].severity
        for settings in (Settings(), Settings(serious=0.2), Settings(critical=0.12))
    ]
    assert severities == [Severity.SERIOUS, Severity.MODERATE, Severity.CRITICAL]


@pytest.mark.parametrize(("saving", "graded"), [(0.049, Severity.NOTE), (0.051, Severity.CRITICAL)])
def test_what_saves_less_than_anybody_notices_is_a_note_whatever_its_share(
    saving: float, graded: Severity
) -> None:
    assert severity((saving, saving), 0.1) == graded


def test_severity_that_a_rule_chose_itself_is_left(only: Only) -> None:
    only(rule("a", [found("a", 3.0, severity=Severity.NOTE)]))
    assert diagnose(made(), Settings(critical=0.12))[0].severity == Severity.NOTE


# -- nothing to fix -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("saving", "expected"), [(0.1, ["a", "nothing-to-fix"]), (1.0, ["a"]), (19.0, ["a"])]
)
def test_nothing_to_fix_is_last_where_no_other_is_above_a_note(
    saving: float, expected: list[str], only: Only
) -> None:
    only(rule("a", [found("a", saving)]))
    assert ids(diagnose(made())) == expected


def test_nothing_to_fix_states_the_shares_and_the_bound(only: Only) -> None:
    only()
    [last] = diagnose(made(expr=1.0, tokenize=4.0))
    assert last.evidence["construction_share"] == pytest.approx(0.2)
    assert last.evidence["optimization_share"] == pytest.approx(0.05)
    assert last.saving_s == pytest.approx((0.0, 4.0))
    assert last.evidence["most_in"] == "construction"
    said = "No known cause; without construction the run would be at most 4.00 s shorter"
    assert last.headline == said


@pytest.mark.parametrize(("cpus", "says"), [(1, "4 threads share 1 processor"), (4, "workers")])
def test_more_workers_are_no_advice_where_their_threads_share_the_processors(
    cpus: int, says: str, only: Only
) -> None:
    only()
    crew = Crewed(4)
    for worker in range(4):
        crew.cpus(worker, cpus)
    end = side_by_side(crew, [(worker, 900) for worker in range(4)])
    crew.computed(min(1.0, cpus / 4))
    [last] = diagnose(crew.recording(end))
    assert f"more {'processors (' if cpus == 1 else ''}{says}" in last.fix.text


def test_a_finding_that_does_away_with_others_is_told_in_their_place(only: Only) -> None:
    """Where it saves about as much as each."""
    whole = found("whole", 4.0, cause="whole", also=frozenset({"one", "two"}))
    parts = [found("part", 3.0, cause="one"), found("part", 9.0, cause="two")]
    only(rule("whole", [whole]), rule("part", parts))
    assert [(f.rule, f.cause) for f in diagnose(made())] == [("part", "two"), ("whole", "whole")]


def test_longest_verdict_without_a_known_cause_fits_a_line(only: Only) -> None:
    only()
    [last] = diagnose(made(graph_dump=19.0))
    assert "serialization" in last.headline
    assert len(last.headline) <= 80


def test_where_nothing_of_dask_ran_that_is_said_and_what_to_do(only: Only) -> None:
    """Not that there is nothing to fix, nor that code in tasks should be faster."""
    only()
    recording = made()
    [last] = diagnose(recording)
    assert last.rule == "nothing-to-fix"
    assert last.headline.startswith("No Dask computation was seen here: no compute, persist or")
    assert len(last.headline) <= 80
    assert "profile that process itself" in last.fix.text
    assert (last.cost_s, last.saving_s) == (0.0, (0.0, 0.0))
    assert recording.innocence() == []


@pytest.mark.parametrize(("built", "said"), [(0, "Dask only moved data, for 2.00 s"), (900, "")])
def test_where_data_was_moved_and_nothing_computed_that_is_said(
    built: float, said: str, only: Only
) -> None:
    """Not that there is no known cause, as of a slow computation."""
    only()
    program = HandMade()
    program.rows_of(CLIENT).append((BLOCK, ns(0), ns(2000), LANE, "_scatter", 0, 0, 0, ""))
    program.span("build", 2000, 2000 + built)
    [last] = diagnose(program.recording(3000))
    told = f"No Dask computation was seen here: {said}" if said else "No known cause"
    assert last.headline.startswith(told)
    assert last.cost_s == pytest.approx(2.0, abs=0.01)
    assert not said or last.saving_s == (0.0, 0.0)


def test_cluster_on_which_nothing_ran_while_it_was_watched_is_told_apart(only: Only) -> None:
    only()
    [last] = diagnose(stageprof.Recording(attached_store()))
    assert "none ran on this cluster meanwhile" in last.headline


def attached_store() -> Store:
    """A scheduler that was watched for a while."""
    place = Place("scheduler", "host", 2, "tcp://host:1", 1)
    store = Store()
    store.add(pack(place, 0, SECOND, []))
    store.add(pack(place, 1, 3 * SECOND, [(MARK, 2 * SECOND, "worker seen", "tcp://w 1 0 3")]))
    return store


def test_nothing_to_fix_is_a_note_whatever_is_set(only: Only) -> None:
    only()
    [last] = diagnose(made(expr=15.0), Settings(critical=0, serious=0, moderate=0))
    assert last.severity == Severity.NOTE


class _Replayed(stageprof.Recording):
    """One whose replay knows a tighter bound than the account."""

    @cached_property
    def replay(self) -> Any:
        return self

    def at_most(self, stage: Stage) -> float:
        if stage == Stage.OPTIMIZATION:
            raise RuntimeError
        return 0.5


def test_bound_is_that_of_the_replay_and_of_the_account_where_it_fails(only: Only) -> None:
    only()
    [last] = diagnose(_Replayed(made(expr=2.0, tokenize=4.0).store))
    assert last.saving_s == pytest.approx((0.0, 2.0))


def test_nothing_to_fix_can_be_switched_off(only: Only) -> None:
    only()
    assert diagnose(made(), Settings(off=frozenset({"nothing-to-fix"}))) == []


def test_recording_of_nothing_can_be_diagnosed(only: Only) -> None:
    only()
    empty = stageprof.Recording(type(made().store)())
    assert ids(diagnose(empty)) == ["nothing-to-fix"]
    assert empty.innocence() == []


def test_recording_that_took_no_time_fails_no_rule() -> None:
    assert examine(HandMade().recording(0)).failed == ()


# -- what fails ---------------------------------------------------------------------------


def raises(error: BaseException) -> Any:
    def find(recording: object, limits: Limits) -> Iterator[Finding]:
        yield found("bad", 2.0)
        raise error

    return find


@pytest.mark.parametrize(
    "error", [ValueError("no"), RecursionError(), SystemExit(3), StopIteration(), MemoryError()]
)
def test_rule_that_raises_is_noted_and_the_others_go_on(error: BaseException, only: Only) -> None:
    only(rule("bad", raises(error)), rule("good", [found("good", 5.0)]))
    recording = made()
    assert ids(recording.findings()) == ["good", "bad"]  # what it found before is kept
    [failed] = recording.coverage()["rules_failed"]
    assert failed.startswith("bad: ")


GOOD = found("bad", 2.0)


@pytest.mark.parametrize(
    "nonsense",
    [
        "a text",
        3,
        {"rule": "bad"},
        type("Alike", (), {"rule": "bad"})(),
        Finding,
        replace(GOOD, rule="other"),
        replace(GOOD, headline=" "),
        replace(GOOD, headline=None),  # type: ignore[arg-type]
        replace(GOOD, severity="grave"),  # type: ignore[arg-type]
        replace(GOOD, stage="execution "),  # type: ignore[arg-type]
        replace(GOOD, cost_s=float("nan")),
        replace(GOOD, cost_s=-1.0),
        replace(GOOD, saving_s=(3.0, 2.0)),
        replace(GOOD, saving_s=(0.0, float("inf"))),
        replace(GOOD, saving_s=2.0),  # type: ignore[arg-type]
        replace(GOOD, evidence=[1]),  # type: ignore[arg-type]
        replace(GOOD, evidence={"a": object()}),  # type: ignore[dict-item]
        replace(GOOD, where=None),  # type: ignore[arg-type]
        replace(GOOD, where=replace(GOOD.where, line="41")),  # type: ignore[arg-type]
        replace(GOOD, fix="do it"),  # type: ignore[arg-type]
        replace(GOOD, documentation="javascript:alert(1)"),
        replace(GOOD, documentation=None),  # type: ignore[arg-type]
    ],
    ids=plainly,
)
def test_answer_that_is_no_finding_is_refused_and_noted(nonsense: Any, only: Only) -> None:
    only(rule("bad", [nonsense, GOOD]))
    diagnosis = examine(made())
    assert diagnosis.findings == (GOOD,)
    assert [text[:5] for text in diagnosis.failed] == ["bad: "]


@pytest.mark.parametrize("answer", [lambda *_: None, list])
def test_rule_that_returns_nothing_to_go_through_is_noted(answer: Any, only: Only) -> None:
    only(rule("bad", answer))
    diagnosis = examine(made())
    assert ids(list(diagnosis.findings)) == ["nothing-to-fix"]
    assert len(diagnosis.failed) == 1


def test_rule_that_never_ends_is_ended(only: Only) -> None:
    only(rule("bad", repeat(GOOD)))
    diagnosis = examine(made())
    assert len(diagnosis.findings) == MOST
    assert "more than" in diagnosis.failed[0]


def test_numbers_of_numpy_become_plain(only: Only) -> None:
    evidence: Any = {"n": np.int64(3), "x": np.float32(0.5)}
    odd = replace(GOOD, cost_s=np.float64(1), evidence=evidence)
    only(rule("bad", [odd]))
    [finding] = diagnose(made())
    assert [type(value) for value in finding.evidence.values()] == [int, float]


# -- settings, remembering, and what it took ----------------------------------------------


def test_rule_that_is_off_is_not_asked(only: Only) -> None:
    only(rule("a", raises(ValueError("asked"))))
    diagnosis = examine(made(), Settings(off=frozenset({"a"})))
    assert diagnosis.failed == ()
    assert diagnosis.off == ("a",)


def test_rule_gets_its_limits_as_they_are_set(only: Only) -> None:
    asked: list[Limits] = []
    limits = {"share": Limit(0.5, "half"), "count": Limit(3, "three")}
    only(rule("a", noting(asked), limits))
    diagnose(made(), Settings(limits=frozenset({("a", "share", 0.1), ("b", "count", 9.0)})))
    assert asked == [{"share": 0.1, "count": 3}]


def test_answer_is_remembered_for_each_settings(only: Only) -> None:
    asked: list[Limits] = []
    only(rule("a", noting(asked)))
    recording = made()
    for settings in (Settings(), Settings(), Settings(serious=0.2), Settings(serious=0.2)):
        diagnose(recording, settings)
    assert len(asked) == 2


def test_what_it_took_and_how_far_it_is_are_told(only: Only) -> None:
    only(rule("a"), rule("b"))
    told: list[tuple[int, int, str]] = []
    clock = iter([5.0, 8.5]).__next__
    diagnosis = examine(made(), progress=lambda *far: told.append(far), clock=clock)
    assert diagnosis.seconds == 3.5
    assert told == [(0, 2, "a"), (1, 2, "b")]


def test_table_of_findings_is_flat(only: Only) -> None:
    only(rule("a", [found("a", 5.4, 6.0), found("a", 4.0, stage=None)]))
    frame = made().findings_frame()
    assert frame.iloc[0].to_dict() == {
        "rule": "a",
        "severity": "serious",
        "headline": "a is slow",
        "cost_s": 6.0,
        "saving_low_s": 5.4,
        "saving_high_s": 6.0,
        "file": "/home/u/etl.py",
        "line": 41,
        "variable": "lookup",
        "layer": "map_partitions-1a2b",
        "prefix": "map_partitions",
        "stage": "serialization",
        "link": "https://github.com/stageprof/stageprof/blob/main/docs/findings.md#a",
    }
    assert frame["stage"][1] == ""


def test_table_of_no_findings_has_its_columns(only: Only) -> None:
    only()
    assert len(made().findings_frame({"rules": {"nothing-to-fix": False}}).columns) == 13


# -- innocence ----------------------------------------------------------------------------


def test_suspect_that_costs_little_is_innocent_with_its_bound() -> None:
    assert made(expr=0.2).innocence() == [
        "Optimizing graphs costs at most 200 ms (1 %) of the wall time",
        "Scheduling costs at most 0 s (0 %) of the wall time",
    ]


def test_suspect_that_costs_much_is_not_named() -> None:
    assert made(expr=2.0).innocence() == ["Scheduling costs at most 0 s (0 %) of the wall time"]


def test_nobody_is_innocent_of_what_is_unexplained(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = made()
    recording.account.entries[0, "client"].wall = round(WALL_S * 1e9 / 10)
    assert recording.innocence() == []
