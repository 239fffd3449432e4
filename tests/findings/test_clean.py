"""Well-written programs: nothing above a note is found in them."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest
from distributed import Client

import stageprof
from clusters import separate
from findings.pairs import ROOT
from stageprof_collectors.findings.finding import Severity

PROGRAMS: Final = sorted((ROOT / "samples" / "clean").glob("*.py"))
#: Those that take longest; the others show the same every time.
LONG: Final = (
    "array_least_squares", "array_smoothing", "dataframe_groupby", "delayed_tree", "futures_search",
)  # fmt: skip
#: A run of this size warms up the cluster: first-use imports are a finding of their own.
WARM: Final = 0.15


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with separate() as client:
        yield client


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.nightly] * (path.stem in LONG))
        for path in PROGRAMS
    ],
)
def test_nothing_above_a_note_is_found_in_a_clean_program(program: Path, client: Client) -> None:
    main = loaded(program).main
    main(size=WARM)

    with stageprof.profile() as prof:
        main()

    above = [f for f in prof.recording.findings() if f.severity != Severity.NOTE]
    assert not above, [(f.rule, f.headline, f.saving_s) for f in above]


def test_there_are_ten_of_them() -> None:
    assert len(PROGRAMS) >= 10
