"""What docs/settings.md shows can be typed as it is: its examples go by the real catalogue."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from stageprof.configuration import settings_for, settings_of
from stageprof_collectors.findings.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "settings.md").read_text()
LIMIT = frozenset({("embedded-object", "share", 0.02)})
ALL = Settings(off=frozenset({"tiny-tasks"}), limits=LIMIT, serious=0.2)


def example(language: str) -> str:
    """The page's example in a language."""
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STAGEPROF_RULES", raising=False)


def test_the_example_for_a_project_is_taken() -> None:
    Path("pyproject.toml").write_text(example("toml"))
    assert settings_of() == ALL


def test_the_example_for_the_environment_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    words = shlex.split(example("sh"))
    name, _, value = next(word for word in words if "STAGEPROF_RULES" in word).partition("=")
    monkeypatch.setenv(name, value)
    assert settings_of() == ALL


def test_the_example_for_a_command_is_taken() -> None:
    words = shlex.split(example("sh"))
    given = [after for word, after in pairwise(words) if word == "--rule"]
    assert settings_for(given)[0] == Settings(off=ALL.off, limits=LIMIT)


def test_the_example_in_python_is_taken() -> None:
    class Asked:
        def findings(self, settings: Any) -> None:
            self.settings = settings_of(settings)

    rec = Asked()
    exec(example("python"), {"rec": rec})  # the page is ours
    assert rec.settings == ALL
