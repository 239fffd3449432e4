"""Dask's own tests end as they do without a recording; `dasks_own` is a program, too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nightly import dasks_own


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("each", ["test", "session"])
@pytest.mark.parametrize("name", [*dasks_own.SUITES, "client"])
def test_every_test_ends_as_without_a_recording(name: str, each: str) -> None:
    files = dasks_own.files_of(name, os.environ.get(dasks_own.CHECKOUT, ""))
    if not files:
        pytest.skip(f"tests of {name} are not installed; {dasks_own.CHECKOUT} names a checkout")
    assert dasks_own.compare(name, files, each) == []


SUITE = """
import threading

import dask
from dask import delayed


def test_computes():
    assert delayed(sum)([1, 2]).compute(scheduler="threads") == 3


def test_sees_that_it_is_recorded():
    assert not [t for t in threading.enumerate() if t.name.startswith("stageprof")]
"""


@pytest.mark.nightly
def test_the_comparison_sees_a_test_that_ends_otherwise(tmp_path: Path) -> None:
    """A comparison that could not fail would show nothing."""
    path = tmp_path / "a" / "b" / "test_theirs.py"
    path.parent.mkdir(parents=True)
    path.write_text(SUITE)

    off, on = dasks_own.run([path], ""), dasks_own.run([path], "test")

    assert sorted(off.ended.values()) == ["passed", "passed"]
    (found,) = dasks_own.differences(off, on)
    assert "test_sees_that_it_is_recorded: passed without, failed with" in found
    assert off.recordings == 0
    assert on.recordings == 2
    assert on.events > 0
