"""The way to the Panel app and the static report, which need the packages of `stageprof[ui]`."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from stageprof.attach import Attachment
from stageprof.configuration import Given, settings_of, settings_to_show
from stageprof.progress import Progress
from stageprof.reading import room, sensible
from stageprof_collectors.findings.settings import Settings
from stageprof_collectors.recording import Recording
from stageprof_collectors.text import safe
from stageprof_runtime.errors import UsageError

if TYPE_CHECKING:
    from panel.viewable import Viewable

    from stageprof_ui.server import App
    from stageprof_ui.store import Store


def store(recording: Recording, given: Given = None, *, sources: bool = False) -> Store:
    """What the pages of a recording are made from, with the user's settings.

    Args:
        recording: what they show.
        given: settings over the user's.
        sources: whether they show lines of the user's program; only to this machine's browser.

    Raises:
        UsageError: Panel and what it draws with are not installed.
    """
    settings = _settings(given)
    from stageprof_ui.store import Store

    return Store(recording, settings, sources=sources)


#: What draws the app.
_UI: Final = ("bokeh", "holoviews", "panel")


def needs_ui() -> None:
    """Says what is missing, before anything is run for an app that could not be shown.

    Raises:
        UsageError: Panel and what it draws with are not installed.
    """
    for name in _UI:
        if importlib.util.find_spec(name) is None:
            raise _missing(name)


def _missing(name: str | None) -> UsageError:
    return UsageError(
        f"the app needs {name or 'Panel'}, which is not installed",
        expected="Panel, HoloViews and Bokeh",
        do="pip install 'stageprof[ui]'",
    )


def _settings(given: Given = None) -> Settings:
    """The user's settings, once it is known that the app can be shown at all.

    Raises:
        UsageError: Panel and what it draws with are not installed.
    """
    try:
        import bokeh  # noqa: F401
        import holoviews  # noqa: F401, ICN001
        import panel  # noqa: F401, ICN001
    except ImportError as error:
        raise _missing(error.name) from error
    if given is not None:
        return settings_of(given)
    settings, problem = settings_to_show()
    if problem:
        click.echo(safe(f"stageprof: {problem}", limit=500), err=True)
    return settings


def embedded(recording: Recording) -> Viewable:
    """All pages of a recording as a Panel object.

    Raises:
        UsageError: the packages for it are not installed.
    """
    made = store(recording)
    from stageprof_ui import app

    return app.embedded(made)


def written(recording: Recording, path: str | os.PathLike[str], settings: Given = None) -> None:
    """Write the static report of a recording.

    Raises:
        UsageError: the packages for it are not installed.
        OSError: `path` cannot be written.
    """
    made = store(recording, settings)
    from stageprof_ui import report

    Path(path).write_text(report.text(made), "utf-8")


def served(recording: Recording, *, port: int = 0) -> App:
    """The app of a recording, ready to `run`.

    Raises:
        UsageError: the packages for it are not installed, or the port is in use.
    """
    made = store(recording, sources=True)
    from stageprof_ui.app import page
    from stageprof_ui.server import App

    recording.store.spill()
    with Progress(sys.stderr) as progress:
        _made(made, progress)
    return App(lambda: page(made), port)


def _made(one: Store, progress: Progress | None = None) -> None:
    """Make all that its pages need before the first is asked for, and give memory back."""
    from stageprof_ui.app import prepare

    one.prepare(progress)
    prepare(one)
    one.recording.forget()


def compared(recordings: Sequence[Recording], *, port: int = 0) -> App:
    """The app of several recordings, the first of which the others are compared with.

    `/?recording=2` shows the pages of the second.

    Raises:
        UsageError: as `served`.
    """
    made = [store(recording, sources=True) for recording in recordings]
    for one in made:
        one.recording.store.spill()
        with Progress(sys.stderr) as progress:
            one.prepare(progress)
    from stageprof_ui.app import asked, comparison
    from stageprof_ui.server import App

    numbers = {str(i + 1): i for i in range(len(made))}
    return App(lambda: comparison(made, numbers.get(asked(), 0)), port)


@contextmanager
def listed(folder: str, *, port: int = 0) -> Iterator[App]:
    """The app of a folder: a list of its recordings, and the pages of each.

    Raises:
        UsageError: as `served`, or the folder cannot be read.
    """
    settings = _settings()
    from stageprof_ui.app import asked, opening, page, recordings, refusal
    from stageprof_ui.server import App
    from stageprof_ui.shelf import Shelf

    def made() -> Any:
        if not (name := asked()):
            return recordings(shelf)
        try:
            with sensible(str(shelf.folder / name)):
                found = shelf.made(name, _made)
            return opening(name) if found is None else page(found, back=True)
        except Exception as error:  # the file may come from anybody
            return refusal(str(error) or type(error).__name__)

    with Shelf(folder, settings, max_memory=room()) as shelf:
        yield App(made, port)


@contextmanager
def following(address: str, *, port: int = 0) -> Iterator[App]:
    """The app of a running cluster, which is recorded while its pages are looked at.

    Raises:
        UsageError: as `served`.
        ClusterError: no scheduler answers there, or it lets no plugin in.
    """
    settings = _settings()
    from stageprof_ui.app import following as pages
    from stageprof_ui.live import Run
    from stageprof_ui.server import App

    with Attachment(address, None) as attachment:
        run = Run(
            attachment.collector,
            alive=lambda: attachment.alive,
            lost=lambda: attachment.lost,
            end=attachment.end,
            settings=settings,
        )
        with run:
            yield App(lambda: pages(run), port)
        if not run.saved:
            click.echo("stageprof: what was recorded was not saved", err=True)
        elif run.unsaved_s >= 1:
            late = f"the last {run.unsaved_s:.0f} s were recorded after it and are lost"
            click.echo(f"stageprof: saved as {run.saved}; {late}", err=True)


def show(app: App, *, browser: bool) -> None:
    """Run an app until Ctrl-C, with its address on the terminal."""
    click.echo(f"stageprof: open {app.url}", err=True)
    click.echo("stageprof: only this machine can; Ctrl-C ends it", err=True)
    try:
        app.run(browser=browser)
    except KeyboardInterrupt:
        return
