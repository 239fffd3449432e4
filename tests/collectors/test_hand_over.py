"""Which hand-over a graph at a scheduler came from, where several clients send graphs."""

from __future__ import annotations

from stageprof_collectors.account.attempts import LOCAL
from stageprof_collectors.account.graph import Submit, _Sent

OWN, WORKER, SCHEDULER = 0, 2, 1


def submit(t: int, place: int, line: int, wanted: int = 1) -> Submit:
    return Submit(t, place, 0, wanted, 100, 7, 3, line)


def sent(*submits: Submit) -> _Sent:
    return _Sent(list(submits), {"Client-own": OWN})


def test_a_strangers_graph_takes_nobodys_hand_over() -> None:
    """It wants as many keys as that of a task, which comes later."""
    hand_overs = sent(submit(10, WORKER, 42))
    assert hand_overs.take(SCHEDULER, 0, 20, 1, "Client-stranger", in_task=False) is None
    found = hand_overs.take(SCHEDULER, 1, 30, 1, "Client-worker-x", in_task=False)
    assert found is not None
    assert found.line == 42


def test_a_client_that_a_task_made_is_no_stranger() -> None:
    """The scheduler was told which task it was."""
    hand_overs = sent(submit(10, WORKER, 42))
    found = hand_overs.take(SCHEDULER, 0, 20, 1, "Client-made-there", in_task=True)
    assert found is not None
    assert found.line == 42


def test_a_recorded_clients_graph_takes_its_own() -> None:
    hand_overs = sent(submit(10, WORKER, 42), submit(11, OWN, 43))
    found = hand_overs.take(SCHEDULER, 0, 20, 1, "Client-own", in_task=False)
    assert found is not None
    assert found.line == 43


def test_a_local_scheduler_keeps_its_hand_over_to_itself() -> None:
    """It wants as many keys as the cluster's graphs after it, each of which took the one before."""
    local = Submit(10, OWN, LOCAL, 1, 0, 7, 3, 42)
    hand_overs = sent(local, submit(20, OWN, 43), submit(30, OWN, 44))
    assert hand_overs.take(OWN, LOCAL, 10, 1, "", in_task=False) == local
    for number, line in ((0, 43), (1, 44)):
        found = hand_overs.take(SCHEDULER, number, 40, 1, "Client-own", in_task=False)
        assert found is not None
        assert found.line == line
