"""`stageprof compare` as a user types it: what it reads, prints and writes, and how it ends."""

from __future__ import annotations

import gc
import json
import re
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest
from dask.base import compute
from dask.delayed import delayed

import stageprof
from benchmarks.generate import generate
from faces.conftest import HOSTILE, double
from stageprof.chosen import chosen
from stageprof.cli import main
from stageprof.comparison import measured
from stageprof.renderers import compare_terminal
from stageprof.renderers.compare_markdown import SIZE
from stageprof_collectors.recording import Recording
from stageprof_runtime.errors import NotARecording, UsageError

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of small recordings: `base`, as many tasks; `more`, twice as many; `empty`."""
    folder = tmp_path_factory.mktemp("pool")
    for name, tasks, seeds in (("base", 80, range(3)), ("more", 160, range(3, 6))):
        (folder / name).mkdir()
        for seed in seeds:
            generate(folder / name / f"{seed}.stageprof", tasks=tasks, workers=2, seed=seed)
    (folder / "empty").mkdir()
    return folder


@pytest.fixture
def run(pool: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command in the folder of the pool: status, standard output, standard error."""
    monkeypatch.chdir(pool)

    def command(*words: str) -> tuple[int, str, str]:
        status = main(["compare", *words])
        return status, *capsys.readouterr()

    return command


@pytest.mark.parametrize(
    "words",
    [
        ("base/0.stageprof", "base/1.stageprof", "--", "base/2.stageprof"),
        ("base", "--", "base"),
        ("base", "base"),
        ("base/*.stageprof", "--", "base"),
        ("base/0.stageprof", "base/1.stageprof"),
    ],
    ids=["files", "folders", "two words", "a glob", "two files"],
)
def test_the_same_program_ends_with_0(run: Run, words: tuple[str, ...]) -> None:
    status, out, err = run(*words)

    assert (status, err) == (0, "")
    assert "No regression" in out


def test_more_tasks_end_with_1(run: Run) -> None:
    """Twice as much is made, which is named; counts are judged all the same."""
    status, out, _ = run("base", "--", "more")

    assert status == 1
    assert "Not the same on both sides" in out
    assert "Times are not judged, for conditions differ" in out
    assert "tasks in graphs" in out
    assert "80 -> 160" in out


def test_few_recordings_are_enough_for_counts_only(run: Run) -> None:
    status, out, _ = run("base", "--", "base")

    assert status == 0
    assert "Times cannot be judged by so few recordings" in out


def test_options_may_stand_on_either_side(run: Run) -> None:
    assert run("base", "--", "more", "--json")[1] == run("--json", "base", "--", "more")[1]


def test_the_terminal_shows_both_sides_as_bars_in_80_columns(run: Run) -> None:
    _, out, _ = run("base", "--", "more")

    assert max(map(len, out.splitlines())) <= 80
    assert out.count("█") > 10


def test_every_form_is_written_where_it_is_wanted(run: Run, tmp_path: Path) -> None:
    """One may go to standard output; those with a file leave the report on the terminal."""
    files = [tmp_path / name for name in ("a.md", "b.json", "c.xml")]
    words = ("--markdown", str(files[0]), "--json", str(files[1]), f"--junit={files[2]}")
    status, out, _ = run("base", "--", "more", *words)

    assert status == 1
    assert out.startswith("stageprof compare")
    assert files[0].read_text().startswith("### stageprof compare")
    assert json.loads(files[1].read_text())["verdict"] == "regression"
    suite = ET.fromstring(files[2].read_text())[0]
    assert int(suite.get("failures", 0)) == len(suite.findall(".//failure")) > 0
    assert run("base", "--", "more", "--json")[1] == files[1].read_text()


def test_the_json_is_that_of_the_documentation(run: Run) -> None:
    whole = json.loads(run("base", "--", "more", "--json")[1])
    page = (Path(__file__).parents[2] / "docs" / "compare.md").read_text()

    assert whole["schema"] == "stageprof.compare/1"
    assert [name for name in whole if f"`{name}`" not in page] == []
    assert whole["times"][0]["name"] == "wall"
    assert {c["name"]: c["judged"] for c in whole["counts"]}["graph_tasks"] == "worse"


def test_a_run_of_recordings_is_forgotten_one_by_one(pool: Path) -> None:
    """However many there are: when one is begun, none that was read is there."""
    alive: list[int] = []

    def look(done: int, of: int, what: str) -> None:
        gc.collect()
        alive.append(sum(isinstance(each, Recording) for each in gc.get_objects()))

    gc.collect()
    before = sum(isinstance(each, Recording) for each in gc.get_objects())
    assert len(measured([pool / "base", pool / "more"], "baseline", progress=look)) == 6
    assert alive == [before] * 6


def test_each_file_counts_once(pool: Path) -> None:
    """A folder, a glob and a file that overlap name three recordings."""
    words: list[str | Path] = [pool / "base", f"{pool}/base/*", pool / "base" / "1.stageprof"]

    assert [path.name for path in chosen(words, "baseline")] == [f"{i}.stageprof" for i in range(3)]


# -- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no recording was named"),
        (("base",), "only one recording was named, base"),
        (("base",), "name both: stageprof compare before.stageprof -- after.stageprof"),
        (("base", "more", "base"), "3 recordings were named, and no --"),
        (("base", "--"), "no recording for the candidate"),
        (("base", "--", "base", "--", "base"), "-- stands 2 times"),
        (("base", "--", "nowhere"), "no file nowhere (for the candidate)"),
        (("empty", "--", "base"), "empty holds no *.stageprof file (for the baseline)"),
        (("base", "--", "base/*.nothing"), "no file base/*.nothing"),
        (("base", "--", "base", "--floor", "lots"), "'lots' is no share"),
        (("base", "--", "base", "--paired", "--json", "--junit"), "on standard output"),
        (("base", "--", "more/3.stageprof", "--paired"), "pairs of 3 and 1 complete recordings"),
        (("base", "--", "base", "--json=base/0.stageprof"), "a file that is no recording"),
        (("base", "--", "base", "--markdown=no/such/folder.md"), "cannot write no/such/folder.md"),
        (("base", "--", "base", "--markdown=x", "--json=./x"), "two forms for one file"),
        (("base", "--", "base", "--markdown=x", "--html", "x"), "two forms for one file"),
        (("base", "--", "base", "--html", "-"), "--html on standard output"),
    ],
)
def test_bad_input_is_one_line_and_status_2(run: Run, words: tuple[str, ...], said: str) -> None:
    status, out, err = run(*words)

    assert (status, out, err.count("\n")) == (2, "", 1)
    assert said in err


@pytest.mark.parametrize("form", ["--json=no/x.json", "--junit=no/x.xml", "--html=no/x.html"])
def test_a_place_that_cannot_be_is_refused_before_anything_is_read(run: Run, form: str) -> None:
    status, out, err = run("base", "--", "more", form)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "its folder does not exist" in err


def test_what_was_found_is_told_though_it_cannot_be_written(run: Run, pool: Path) -> None:
    """The verdict of minutes of reading was lost."""
    (pool / "taken.json").mkdir(exist_ok=True)
    status, out, err = run("base", "--", "more", "--json=taken.json")
    assert status == 2
    assert "cannot write taken.json" in err
    assert "160" in out


def test_who_reads_no_further_than_the_first_lines_does_not_cost_the_files(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`stageprof compare base -- more --json=found.json | head -5`."""

    def gone(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(compare_terminal, "show", gone)
    run("base", "--", "more", "--json=found.json")
    assert Path("found.json").exists()


def test_a_file_that_is_no_recording_is_named(run: Run, tmp_path: Path) -> None:
    """Also among good ones."""
    (tmp_path / "bad.stageprof").write_bytes(b"nothing of that kind")
    status, _, err = run("base", str(tmp_path), "--", "base")

    assert status == 2
    assert "bad.stageprof" in err


def test_a_newer_format_is_refused_with_both_versions(run: Run, pool: Path, tmp_path: Path) -> None:
    newer = bytearray((pool / "base" / "0.stageprof").read_bytes())
    newer[8:10] = (99).to_bytes(2, "little")
    (tmp_path / "new.stageprof").write_bytes(newer)
    status, _, err = run("base", "--", str(tmp_path))

    assert status == 2
    assert "99" in err


def test_an_incomplete_recording_is_left_out_and_named(
    run: Run, pool: Path, tmp_path: Path
) -> None:
    """A side of nothing else is bad input."""
    half = tmp_path / "half.stageprof"
    half.write_bytes((pool / "base" / "0.stageprof").read_bytes()[:-40])
    status, out, _ = run("base", str(half), "--", "base")
    alone = run("base", "--", str(half))

    assert status == 0
    assert "Left out of the baseline: half.stageprof: recording incomplete" in out
    assert alone[0] == 2
    assert "no complete recording of the candidate" in alone[2]


def record(path: Path, label: str, name: str = "x") -> None:
    """A few tasks on the synchronous scheduler."""
    with stageprof.profile(path, label=label, gil=False):
        compute(
            *(delayed(double)(i, dask_key_name=f"{name}{i}") for i in range(3)), scheduler="sync"
        )


def test_recordings_of_different_programs_are_refused(run: Run, tmp_path: Path) -> None:
    """They are named first where the user insists."""
    record(tmp_path / "one.stageprof", "one.py")
    record(tmp_path / "two.stageprof", "two.py")
    sides = (str(tmp_path / "one.stageprof"), "--", str(tmp_path / "two.stageprof"))
    status, _, err = run(*sides)

    assert status == 2
    assert "recordings of different programs:" in err
    assert "one.py (baseline)" in err
    _, out, _ = run(*sides, "--force")
    assert "Not the same on both sides" in out


def test_recordings_of_several_programs_on_a_side_are_refused(run: Run, tmp_path: Path) -> None:
    """Together they would hide what became of either."""
    for name in ("one.py", "two.py"):
        record(tmp_path / f"{name}.stageprof", name)
    status, out, err = run(str(tmp_path), "--", str(tmp_path))

    assert (status, out) == (2, "")
    assert re.search("recordings of 2 programs for the baseline: .*one.py.*two.py", err)
    assert run(str(tmp_path), "--", str(tmp_path), "--force")[0] == 0


def test_cases_of_two_programs_have_names_of_their_own(run: Run, tmp_path: Path) -> None:
    """Who reads both, as GitLab does, keeps the first of one name."""
    cases = []
    deep = "tests/" + "very_deep/" * 15
    for i, name in enumerate(("one.py", "two.py", f"{deep}one.py", f"{deep}two.py")):
        record(tmp_path / f"{i}.stageprof", name)
        _, out, _ = run(*[str(tmp_path / f"{i}.stageprof")] * 2, "--junit")
        found = ET.fromstring(out).iter("testcase")
        cases += [(case.get("classname"), case.get("name")) for case in found]

    assert len(cases) > 10
    assert len(set(cases)) == len(cases)


@pytest.mark.parametrize("floor", [5, -1, float("nan"), "5%"])
def test_a_floor_that_is_no_share_is_refused(pool: Path, floor: float) -> None:
    with pytest.raises(UsageError, match="a share from 0 to 1"):
        stageprof.compare(pool / "base", pool / "base", floor=floor)


def test_numbered_files_are_in_the_order_of_their_numbers(pool: Path, tmp_path: Path) -> None:
    """As a test that is repeated leaves them: what is compared in pairs must be."""
    for i in (1, 2, 10, 9):
        shutil.copy(pool / "base" / "0.stageprof", tmp_path / f"{i}.stageprof")
    for words in (str(tmp_path), str(tmp_path / "*.stageprof")):
        assert [path.stem for path in chosen([words], "baseline")] == ["1", "2", "9", "10"]


def test_no_recording_is_named_by_a_path_that_cannot_be(pool: Path) -> None:
    with pytest.raises(NotARecording):
        chosen(["a\0b"], "baseline")


# -- hostile texts ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two recordings whose every text was chosen by an enemy; the second has more tasks."""
    folder = tmp_path_factory.mktemp("hostile")
    label = "".join(HOSTILE[:8])
    for i, names in enumerate((HOSTILE[:3], HOSTILE)):
        with stageprof.profile(folder / f"{i}.stageprof", label=label, gil=False):
            compute(*(delayed(double)(0, dask_key_name=n) for n in names), scheduler="sync")
    name = "`@team` <b>|\x1b[31m.stageprof"
    shutil.copy(folder / "0.stageprof", folder / name)
    with (folder / name).open("r+b") as file:
        file.truncate((folder / name).stat().st_size - 30)
    return folder


FORMS = ("", "--json", "--markdown", "--junit")


@pytest.mark.parametrize("form", FORMS)
def test_nothing_of_a_recording_acts_on_whoever_reads(run: Run, hostile: Path, form: str) -> None:
    base, head = (str(hostile / f"{i}.stageprof") for i in range(2))
    odd = str(hostile / "`@team` <b>|\x1b[31m.stageprof")
    _, out, _ = run(base, odd, "--", head, *filter(None, [form]))

    allowed = {"\n"}
    assert [c for c in out if ord(c) < 32 and c not in allowed] == []
    assert "\u202e" not in out
    if form == "--markdown":
        assert len(out.encode()) < SIZE
        for line in out.splitlines():
            plain = "".join(line.split("`")[::2])
            assert "@team" not in plain, line
            assert "<img" not in plain, line
            assert "](" not in plain, line
    if form == "--junit":
        ET.fromstring(out)
    if form == "--json":
        json.loads(out)


def test_a_notebook_shows_it_without_markup_of_theirs(hostile: Path) -> None:
    found = stageprof.compare(hostile / "0.stageprof", hostile / "1.stageprof")

    assert "<img" not in found._repr_html_()
    assert "<script" not in found._repr_html_()


# -- from Python ------------------------------------------------------------------------------


def test_recordings_and_paths_are_compared_from_python(pool: Path) -> None:
    opened = [stageprof.open(path) for path in sorted((pool / "base").iterdir())]
    found = stageprof.compare(opened, [pool / "more"])
    frame = found.frame()

    assert found.regressions == sum(frame["judged"] == "worse") > 0
    assert str(found).startswith("stageprof compare")
    assert found._repr_markdown_().startswith("### stageprof compare")
    assert set(frame["kind"]) >= {"time", "count"}
    assert frame.loc[frame["name"] == "graph_tasks", "after"].item() == 160


def test_markdown_fits_a_comment_whatever_there_is_to_say(
    pool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is too long for a comment on GitHub ends at a line, and says so."""
    from stageprof.renderers import compare_markdown

    found = stageprof.compare(pool / "base", pool / "more")
    monkeypatch.setattr(compare_markdown, "SIZE", 600)
    cut = compare_markdown.text(found)

    assert len(cut.encode()) < 600
    assert cut.endswith("The rest is left out; `--json` has it all.\n")


@pytest.mark.nightly
def test_five_hundred_recordings_a_side(pool: Path, run: Run, tmp_path: Path) -> None:
    """They are read one by one, and none of them is kept."""
    for side, seeds in (("base", (0, 1)), ("head", (2, 0))):
        (tmp_path / side).mkdir()
        for i in range(500):
            source = pool / "base" / f"{seeds[i % 2]}.stageprof"
            shutil.copy(source, tmp_path / side / f"{i}.stageprof")
    status, out, _ = run(str(tmp_path / "base"), "--", str(tmp_path / "head"))

    assert "500 recordings against 500 of the baseline" in out
    assert status in (0, 1)
