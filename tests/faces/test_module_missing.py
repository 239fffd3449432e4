"""`stageprof run -m` of a module that is not there: nothing is imported, and no recording lost."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from stageprof import program
from stageprof.cli import main

#: A package that says itself where its modules are.
DYNAMIC = "import os\n__path__ = [os.path.join(os.path.dirname(__file__), 'parts')]\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with packages that tell if they are imported."""
    monkeypatch.chdir(tmp_path)
    for folder, text in (
        ("plain", "raise SystemExit(9)"),
        ("plain/inner", "raise SystemExit(9)"),
        ("dynamic", DYNAMIC),
        ("dynamic/parts", ""),
        ("spaces", None),
        ("spaces/within", None),
    ):
        (tmp_path / folder).mkdir()
        if text is not None:
            (tmp_path / folder / "__init__.py").write_text(text)
    for module in ("plain/job", "plain/inner/__main__", "dynamic/parts/job", "spaces/within/job"):
        (tmp_path / f"{module}.py").write_text("print('ran')\n")
    return tmp_path


@pytest.mark.parametrize(
    "name",
    ["plain.typo", "plain.inner.typo", "plain.job.typo", "plain", "typo.job", "spaces.typo",
     "plain.typo.job", "plain."],
)  # fmt: skip
def test_a_recording_stays_and_nothing_runs(
    name: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the module is missing and not what it is in, it was replaced by one of nothing."""
    (here / "old.stageprof").write_bytes(b"a recording")

    assert main(["run", "-m", name, "-o", "old.stageprof"]) == 2
    assert main(["run", "-m", name]) == 2

    assert "no module" in capsys.readouterr().err
    assert [path.name for path in here.glob("*.stageprof")] == ["old.stageprof"]
    assert (here / "old.stageprof").read_bytes() == b"a recording"


@pytest.mark.parametrize(
    "name",
    ["plain.job", "plain.inner", "plain.inner.__main__", "dynamic.job", "spaces.within.job",
     "json.tool", "distributed.cli.dask_worker"],
)  # fmt: skip
def test_one_that_is_there_is_found_without_importing_what_it_is_in(name: str, here: Path) -> None:
    before = set(sys.modules)
    assert program.module(name, ()).name == name
    assert not {"plain", "dynamic", "spaces"} & (set(sys.modules) - before)
