"""`stageprof flame`, `stageprof snakeviz` and the exports, as a user types them."""

from __future__ import annotations

import marshal
import pickle
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from dask.delayed import delayed

import stageprof
from clusters import soon
from profiles.stacks_made import HOSTILE, Seen
from profiles.test_flame import built, hostile
from stageprof.cli import main
from stageprof.pages import flame, inline, snakeviz
from stageprof_collectors.profiles.stats import stats

#: Marks of what was drawn through HTML instead of as text.
ACTS = re.compile(r"<img src=x|</script><script>window")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of a real construction."""
    path = tmp_path_factory.mktemp("profiles") / "etl.stageprof"
    with stageprof.profile(path, gil=False) as prof:
        soon(lambda: [delayed(abs)(i) for i in range(3000)] and prof.live is not None)
        [delayed(abs)(i) for i in range(3000)]
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "page"),
    [
        (["flame"], "etl.flame.html"),
        (["flame", "--stage", "construction"], "etl.flame.html"),
        (["snakeviz", "--stage", "construction"], "etl.construction.snakeviz.html"),
        (["snakeviz"], "etl.snakeviz.html"),
        (["snakeviz", "-o", "own.html"], "own.html"),
    ],
)
def test_a_page_is_written_once(
    words: list[str],
    page: str,
    recorded: Path,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command, *options = words
    assert main([command, str(recorded), *options]) == 0
    assert capsys.readouterr().out == f"Wrote {page}\n"
    assert (folder / page).read_text().startswith("<!doctype html>")
    assert main([command, str(recorded), *options]) == 2
    assert f"{page} exists" in capsys.readouterr().err
    assert main([command, str(recorded), *options, "--force"]) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["flame", "--stage", "nonsense"], "stage 'nonsense'; expected one of construction"),
        (["flame", "--prefix", "nothing"], "no look at a task of prefix 'nothing'"),
        (["flame", "--worker", "nobody"], "no worker 'nobody'"),
        (["flame", "--stage", "communication"], "no look at the stage communication"),
        (["snakeviz", "--stage", "communication"], "no look at the stage communication"),
        (["snakeviz", "--stage", "\x1b[31m"], "stage '\\\\x1b[31m'"),
        (["export", "--to", "nonsense"], "nonsense"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    words: list[str],
    said: str,
    recorded: Path,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([words[0], str(recorded), *words[1:]]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("command", ["flame", "snakeviz"])
def test_a_file_that_is_no_recording_is_one_line(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("x.stageprof").write_bytes(b"no recording")
    assert main([command, "x.stageprof"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("form", ["speedscope", "collapsed", "prof"])
def test_the_exports_have_their_own_names(
    form: str, recorded: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(recorded), "--to", form]) == 0
    written = capsys.readouterr().out.removeprefix("Wrote ").strip()
    assert written.startswith("etl.")
    assert Path(written).stat().st_size > 100


def test_opening_a_recording_unmarshals_and_unpickles_nothing(
    recorded: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*args: object, **kwargs: object) -> None:
        raise AssertionError

    commands = (["flame"], ["snakeviz"], ["export", "--to", "prof"])
    for command in commands:  # what is imported with the first is unmarshalled by Python itself
        assert main([*command, str(recorded)]) == 0
    for module, names in ((marshal, ("load", "loads")), (pickle, ("load", "loads", "Unpickler"))):
        for name in names:
            monkeypatch.setattr(module, name, forbidden)
    for command in commands:
        assert main([*command, str(recorded), "--force"]) == 0


# -- what the pages hold --------------------------------------------------------------------------


def snakeviz_of(made: Seen) -> str:
    return snakeviz.text(stats(made.recording()), HOSTILE[1])


def flame_of(made: Seen) -> str:
    return flame.text(stageprof.Recording.of(made.recording()))


@pytest.mark.parametrize("page", [flame_of, snakeviz_of])
def test_pages_load_nothing_and_run_nothing_but_their_own(page: Callable[[Seen], str]) -> None:
    text = page(hostile())
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert "default-src 'none'" in policy[1].replace("&#x27;", "'")
    assert "script-src &#x27;sha256-" in policy[1] or "script-src 'sha256-" in policy[1]
    assert "script-src 'unsafe-inline'" not in policy[1]
    assert not re.search(r"<(?:script|img|iframe|link)[^>]+(?:src|href)=", text)
    assert "importScripts" not in text
    assert not any("url(" in style for style in re.findall(r"<style>.*?</style>", text, re.DOTALL))
    assert not ACTS.search(text)


def test_a_page_of_one_stage_says_so_and_shows_the_users_line() -> None:
    text = flame.text(stageprof.Recording.of(built()), "construction")
    assert "construction: 200 looks, which stand for 4.00 s" in text
    assert '"/u/etl.py"' in text
    assert "etl.py:20" in text


def test_a_snakeviz_of_another_form_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    snakeviz._template.cache_clear()
    monkeypatch.setattr(snakeviz, "_SCRIPT", re.compile("nothing like this"))
    with pytest.raises(snakeviz.NoTemplate, match="template of another form"):
        snakeviz.text(stats(built()), "x")
    snakeviz._template.cache_clear()


def test_data_cannot_end_its_script() -> None:
    text = inline.data({"x": "</script><!-- & \u2028"})
    assert not set(text) & set("<>&\u2028")
    with pytest.raises(ValueError, match="JSON"):
        inline.data(float("nan"))
