"""What pytest loads: the option, the marker and the fixture; docs/pytest.md.

Loaded in every pytest run of an environment, so it imports nothing but the standard library and
pytest. It lies beside the package `stageprof`, whose import takes most of a second; what records
is in `stageprof.testing`, imported once there is a test to record.
"""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from stageprof.testing.recorder import Recorder

#: Where recordings go unless `--stageprof=DIR` says otherwise.
FOLDER: Final = "stageprof-recordings"
OPTION: Final = "--stageprof"
MARKER: Final = "stageprof"
FIXTURE: Final = "stageprof_recorder"

_MARKER_HELP: Final = (
    f"{MARKER}(repeat=1, max_wall=None, max_stage=None, no_findings_above=None): record the test "
    "with stageprof, and fail it beyond these limits"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--stageprof[=DIR]` and `--no-stageprof`."""
    group = parser.getgroup("stageprof", "where the time of Dask computations goes")
    group.addoption(
        OPTION, metavar="DIR", dest="stageprof", nargs="?", const=FOLDER,
        help="keep a recording of each test that is marked stageprof (of every test, if none is) "
        f"in DIR, by default ./{FOLDER}",
    )  # fmt: skip
    group.addoption(
        "--no-stageprof", action="store_true", help="record and judge no test for its marker"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> None:
    """A bare `--stageprof` takes no word after it: `pytest --stageprof tests` means the tests.

    What pytest understood until now is understood anew: it says where the first conftests are.
    """
    end = args.index("--") if "--" in args else len(args)
    if OPTION in args[:end]:
        args[:end] = [f"{OPTION}={FOLDER}" if word == OPTION else word for word in args[:end]]
        early_config.known_args_namespace = parser.parse_known_args(
            args, namespace=copy.copy(early_config.option)
        )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker; say where recordings go before xdist's workers are told."""
    config.addinivalue_line("markers", _MARKER_HELP)
    given = config.option.stageprof
    if given is not None:
        config.option.stageprof = str((config.invocation_params.dir / given).absolute())
        if not given or (Path(config.option.stageprof).exists() and not _is_folder(config)):
            raise pytest.UsageError(f"{OPTION}={given!r}; expected a folder, or a new name for one")


def _is_folder(config: pytest.Config) -> bool:
    return Path(config.option.stageprof).is_dir()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """With `--dist each` of xdist, every worker runs every test, and keeps recordings apart."""
    if node.config.getoption("dist", "no") == "each":
        node.workerinput["stageprof_part"] = str(node.gateway.id)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Where recordings go."""
    folder = config.option.stageprof
    return f"stageprof: recordings go to {folder}" if folder and _on(config) else None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Get ready to record, if there is a test to record."""
    config = session.config
    items = _chosen(session.items, everything=config.option.stageprof is not None)
    if not items or not _on(config) or config.option.collectonly:
        return
    with warnings.catch_warnings():
        # What dask and pandas import is no affair of these tests.
        warnings.simplefilter("ignore")
        from stageprof.testing.plugin import plugin
    recording = plugin(items, _folder(config), worker=hasattr(config, "workerinput"))
    config.pluginmanager.register(recording, "stageprof-recording")


def _folder(config: pytest.Config) -> Path | None:
    part = getattr(config, "workerinput", {}).get("stageprof_part", "")
    return Path(config.option.stageprof, part) if config.option.stageprof else None


def _on(config: pytest.Config) -> bool:
    return not config.option.no_stageprof


def _chosen(items: list[pytest.Item], *, everything: bool) -> list[pytest.Item]:
    """Those with the marker or the fixture; all of them, if that is wished and none has."""
    functions = [item for item in items if isinstance(item, pytest.Function)]
    chosen = [i for i in functions if i.get_closest_marker(MARKER) or FIXTURE in i.fixturenames]
    return list(chosen or (functions if everything else ()))


@pytest.fixture
def stageprof_recorder(request: pytest.FixtureRequest) -> Recorder:
    """What records blocks of a test that asks for it.

    ::

        with stageprof_recorder("join") as region:
            ...
        assert region.recording.wall < 3
    """
    from stageprof.testing.recorder import recorder_of

    return recorder_of(request.node)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table of the tests that were recorded, those of xdist's workers as well."""
    reports = [
        report
        for outcome, found in terminalreporter.stats.items()
        for report in found
        if outcome != "rerun" and getattr(report, "stageprof", None)
    ]
    if reports:
        from stageprof.testing import table

        table.show(reports, terminalreporter)
