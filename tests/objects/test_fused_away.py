"""Objects in a layer of which fusing leaves no name, and not the line either."""

from __future__ import annotations

import dask.array as da
import numpy as np
from distributed import Client

import stageprof


def test_the_messages_that_an_object_is_in_are_found_by_their_size(client: Client) -> None:
    mask = np.random.default_rng(0).random(250_000)
    small = np.ones(30_000)
    numbers = da.random.random((16_000, 100), chunks=(1000, 100))
    scaled = numbers.map_blocks(lambda block: block * mask[0] + small[0])
    with stageprof.profile() as prof:
        for _ in range(2):
            scaled.mean().compute()
    found = prof.recording.objects()
    for name, thing in (("mask", mask), ("small", small)):
        mine = found[found["variable"] == name]
        assert mine["tasks"].tolist() == [16, 16]
        assert mine["sent_bytes"].tolist() == [16 * thing.nbytes] * 2


def test_no_message_without_room_is_taken_for_it(client: Client) -> None:
    """What a layer holds that ran nowhere was sent with the graph, and no further."""
    mask = np.random.default_rng(0).random(250_000)
    numbers = da.ones((16_000, 100), chunks=(1000, 100))
    kept = da.stack([numbers, numbers.map_blocks(lambda block: block * mask[0])])
    with stageprof.profile() as prof:
        kept[0].sum().compute()
    found = prof.recording.objects()
    assert found[found["variable"] == "mask"]["sent_bytes"].sum() == 0
