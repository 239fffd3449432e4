"""Rule transfer-heavy: results that travel, between whom, and what fetching them costs (B41)."""

from __future__ import annotations

import pytest

from findings.asking import asked, one, run
from replay.handmade import HandMade, ns
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.transfer_heavy import RULE
from stageprof_runtime.event import FINISH, SPAN
from stageprof_runtime.stage import STEP

MB = 1_000_000


def travelling(
    fetch: float,
    *,
    uses: int = 1,
    work: float = 100.0,
    root: bool = True,
    together: bool = False,
) -> Recording:
    """Ten results of 50 MB made on one worker (100 ms each), each fetched by another in turn.

    With `together` one task uses all of them.
    """
    made = HandMade(2)
    graph = made.graph(0, 0, 0)
    now = 0.0
    makers: list[int] = []
    for i in range(10):
        needs = None if i == 0 else [-1] if root else [makers[-1]]
        cause = -1 - graph if i == 0 else makers[-1]
        makers.append(made.run(0, now, now + 100, cause=cause, needs=needs, key=f"loaded-{i:032x}"))
        now += 100
    last = -1
    for i, maker in enumerate(makers):
        if together and i < 9:
            continue
        needs = makers if together else [maker]
        for j in range(uses):
            got = fetch if not j else 0.0
            cause = last if last >= 0 else makers[-1]
            last = made.run(
                1, now + got, now + got + work, cause=cause, needs=needs, lead=(now, now),
                fetched=now + got, key=f"used-{i * 10 + j:032x}", wanted=i == 9 and j == uses - 1,
            )  # fmt: skip
            if got:
                _fetched(made, now, now + got)
            now += got + work
    made.wait(0, now, last, now)
    _sized(made, makers)
    return made.recording(now)


def _fetched(made: HandMade, start: float, stop: float) -> None:
    one_, other = made._workers
    row = (SPAN, STEP["data.transfer"], ns(start), ns(stop), 3, one_.name, 50 * MB)
    made._rows[other].append(row)


def _sized(made: HandMade, runs: list[int]) -> None:
    for rows in made._rows.values():
        rows[:] = [
            (*row[:4], 50 * MB, row[5]) if row[0] == FINISH and row[1] in runs else row
            for row in rows
        ]


def test_what_tasks_wait_for_is_the_cost_and_the_layers_are_named() -> None:
    found = one(RULE, travelling(300))
    assert found.cost_s == pytest.approx(3.0, abs=0.02)
    assert found.evidence["results"] == 10
    assert found.evidence["stream_bytes"] == 500 * MB
    assert "`loaded` (500 MB) travel to other workers for `used`" in found.headline


def test_making_the_data_where_they_are_used_is_what_is_replayed() -> None:
    """No fetching, and the making moves into the users: 5 s become 2, or 1 on both workers."""
    low, high = one(RULE, travelling(300)).saving_s
    assert 2.7 < low <= high < 4.2


def test_matrix_tells_who_sent_how_much_to_whom_on_which_host() -> None:
    evidence = one(RULE, travelling(300)).evidence
    assert evidence["tcp://host:10 to tcp://host:11_bytes"] == 500 * MB
    assert evidence["same_host_bytes"] == evidence["all_bytes"] == 500 * MB
    assert evidence["other_host_bytes"] == 0


@pytest.mark.parametrize(("fetch", "fires"), [(24.0, True), (20.0, False)])
def test_it_fires_from_a_tenth_of_the_run(fetch: float, fires: bool) -> None:
    assert bool(asked(RULE, travelling(fetch))) == fires


def test_data_that_others_need_too_are_not_made_anew() -> None:
    found = one(RULE, travelling(300, root=False))
    assert found.fix.code == ""
    assert found.saving_s[0] == 0
    assert found.saving_s[1] == pytest.approx(3.0, abs=0.1)


def test_what_one_task_needs_many_of_is_not_made_there() -> None:
    """A reduction that made all of them itself would have one thread do all the work."""
    found = one(RULE, travelling(300, together=True))
    assert found.fix.code == ""
    assert found.saving_s[0] == 0


def test_the_text_says_how_often_data_would_be_made() -> None:
    found = one(RULE, travelling(900, uses=3, work=10))
    assert "used about 3 times" in found.fix.text


def test_printed_code_joins_both_functions() -> None:
    names = run(one(RULE, travelling(300)), loaded=lambda n: [n] * 3, used=sum)
    assert names["used_of_loaded"](7) == 21
