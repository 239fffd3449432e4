"""Catalogues of rules that tests choose, and packages that bring some."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stageprof_collectors.findings import catalogue
from stageprof_collectors.findings.rule import Rule
from stageprof_collectors.rules import nothing_to_fix

Only = Callable[..., None]
Package = Callable[..., Path]


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Only:
    """Called with rules, makes them all that there are (but for `nothing-to-fix`)."""

    def choose(*rules: Rule) -> None:
        chosen = [(r.id, lambda r=r: r) for r in (*rules, nothing_to_fix.RULE)]
        monkeypatch.setattr(catalogue, "_ours", lambda: iter(chosen))
        monkeypatch.setattr(catalogue, "_theirs", lambda: iter(()))

    return choose


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    """Called with a module's source, installs it as a package that offers a rule; its folder."""
    folder = tmp_path / "site-packages"
    monkeypatch.syspath_prepend(folder)

    def install(source: str, entry: str = "theirs = theirs_module") -> Path:
        info = folder / "theirs-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[stageprof.rules]\n{entry}\n")
        (folder / "theirs_module.py").write_text(source)
        importlib.invalidate_caches()
        return folder

    yield install
    sys.modules.pop("theirs_module", None)


@pytest.fixture(autouse=True)
def no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests begin in a folder whose nearest pyproject.toml sets nothing."""
    here = tmp_path / "here"
    here.mkdir()
    (here / "pyproject.toml").write_text("")
    monkeypatch.chdir(here)
    monkeypatch.delenv("STAGEPROF_RULES", raising=False)
