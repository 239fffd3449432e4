"""What looks at instants say of the time between them."""

from __future__ import annotations

from collections import Counter

from stageprof_runtime.gil.looking import GAP_NS, States

LOOK = 10_000_000


def test_nobody_had_it_while_nobody_looked() -> None:
    """The watch itself was stopped, or took long over what py-spy had seen."""
    states, held = States(0), Counter[int]()
    for at in (1, 2, 3):
        states.see(at * LOOK, {7: 0, 8: 1})
    late = 3 * LOOK + 100 * GAP_NS
    for at in (0, 1, 2):
        states.see(late + at * LOOK, {7: 0, 9: 1})
    states.close(late + 2 * LOOK)
    for since, until, thread, _ in states.rows:
        held[thread] += until - since
    assert held == {7: 4.5 * LOOK, 8: 2.5 * LOOK, 9: 2 * LOOK}


def test_a_state_lasts_until_half_way_to_the_look_that_sees_another() -> None:
    states = States(0)
    states.see(2 * LOOK, {7: 0})
    states.see(4 * LOOK, {8: 0})
    states.close(4 * LOOK)
    assert states.rows == [(LOOK, 3 * LOOK, 7, 0), (3 * LOOK, 4 * LOOK, 8, 0)]
