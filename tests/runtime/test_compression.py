"""What compressing messages takes is told, and whose it was; other compressing is not ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import distributed.protocol
import numpy as np
import pytest
from distributed.protocol import Serialize
from distributed.protocol.compression import compressions, maybe_compress

from stageprof_runtime import process
from stageprof_runtime.probes import compression, serialization, shares
from stageprof_runtime.ring import Ring
from stageprof_runtime.stage import STEP

COMPRESS, DECOMPRESS = STEP["compress"], STEP["decompress"]
#: What a worker sends that is asked for data: distributed compresses none on its own host, so the
#: message is made here.
MESSAGE = {"status": "OK", "data": {("zeros-1", 0): Serialize(np.zeros(3_000_000, np.uint8))}}


@pytest.fixture
def ring() -> Iterator[Ring]:
    """Where all goes; short spans too."""
    made = Ring(short_ns=0)
    leave = process.join(
        "worker", made, [serialization.install, compression.install, shares.install]
    )
    yield made
    leave()
    assert all("timed" not in str(c) for c in compressions.values())


def there_and_back(name: Any) -> Any:
    frames = distributed.protocol.dumps(MESSAGE, context={"compression": name})
    return distributed.protocol.loads(frames)


@pytest.mark.parametrize("name", ["zlib", None])
def test_compression_in_messages_is_told_and_its_lack_is_not(ring: Ring, name: Any) -> None:
    there_and_back(name)
    rows = ring.take()
    told = {row[1] for row in rows} & {COMPRESS, DECOMPRESS}
    whose = {row[2:4] for row in rows if row[2] in (COMPRESS, DECOMPRESS)}
    assert told == ({COMPRESS, DECOMPRESS} if name else set())
    assert whose == ({(COMPRESS, "zeros-1"), (DECOMPRESS, "zeros-1")} if name else set())


def test_a_message_comes_back_as_it_was(ring: Ring) -> None:
    (array,) = there_and_back("zlib")["data"].values()
    assert np.array_equal(array, np.zeros(3_000_000, np.uint8))
    assert ring.dropped == 0


def test_compression_outside_messages_is_not_told(ring: Ring) -> None:
    name, compressed = maybe_compress(b"0" * 100_000, compression="zlib")
    assert (name, len(compressed) < 1_000) == ("zlib", True)
    assert ring.take() == []


@pytest.mark.parametrize("error", [ValueError, SystemExit])
def test_no_error_of_ours_reaches_a_message(
    ring: Ring, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """F1: what is told of a compression fails in any way."""

    def fails(*_: Any) -> None:
        raise error

    for name in ("share", "loading"):
        monkeypatch.setattr(compression, name, fails)
    test_a_message_comes_back_as_it_was(ring)
