"""Delays planted where graphs are built are read back as construction."""

from __future__ import annotations

from pathlib import Path

import dask
import dask.array as da
import pytest
from distributed import Client

import planted
from truth import Reading, appears_in, in_steps, read_back, record

DELAY = 0.7


def slow_meta(log: str, delay: float) -> None:
    """Meta inference calls the function on an empty block."""
    x = da.ones((8, 8), chunks=4)
    x.map_blocks(planted.meta_slow, log, delay).sum().compute()


def slow_token(log: str, delay: float) -> None:
    """The name of a layer is a token of its arguments."""
    x = da.ones((8, 8), chunks=4)
    x.map_blocks(planted.identity, planted.SlowToken(log, delay), dtype=x.dtype).sum().compute()


def check(reading: Reading, what: str, step: str) -> None:
    seconds = reading.seconds(what)
    assert seconds >= DELAY
    appears_in(reading, {"construction": seconds})
    in_steps(reading, {step: seconds})


@pytest.mark.smoke
def test_slow_meta_inference_on_a_cluster(cluster: Client, tmp_path: Path) -> None:
    """A function that sleeps on its empty block is construction, step meta."""
    check(read_back(slow_meta, DELAY, tmp_path), "meta", "meta")


def test_slow_meta_inference_locally(local_scheduler: str, tmp_path: Path) -> None:
    """The same on each local scheduler."""
    check(read_back(slow_meta, DELAY, tmp_path), "meta", "meta")


def test_slow_tokenize_on_a_cluster(cluster: Client, tmp_path: Path) -> None:
    """An object that is slow to tokenize is construction, step tokenize."""
    check(read_back(slow_token, DELAY, tmp_path), "tokenize", "tokenize")


def test_slow_tokenize_locally(local_scheduler: str, tmp_path: Path) -> None:
    """The same on each local scheduler."""
    check(read_back(slow_token, DELAY, tmp_path), "tokenize", "tokenize")


def test_fifty_thousand_delayed_calls_are_construction_at_the_line_of_the_loop() -> None:
    """A plain loop of delayed calls costs construction, and the line is the loop's."""
    import time

    spent = []

    def loop() -> None:
        started = time.perf_counter()
        calls = [dask.delayed(planted.identity)(i) for i in range(50_000)]
        spent.append(time.perf_counter() - started)
        assert len(calls) == 50_000

    recording = record(loop)
    seconds = float(recording.stages()["wall_s"]["construction"])
    assert seconds == pytest.approx(spent[0], rel=0.05, abs=0.05)
    spans, strings = recording.timeline.spans, recording.store.strings
    lines = {strings[i] for i in set(spans["label"].tolist())}
    wanted = loop.__code__.co_firstlineno + 2
    assert f"{__file__}:{wanted}" in lines
