"""The way to the Panel app and the static report, which need the packages of `stageprof[ui]`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stageprof.configuration import settings_to_show
from stageprof_collectors.recording import Recording
from stageprof_runtime.errors import UsageError

if TYPE_CHECKING:
    from stageprof_ui.server import App
    from stageprof_ui.store import Store


def store(recording: Recording) -> Store:
    """What the pages of a recording are made from, with the user's settings.

    Raises:
        UsageError: Panel and what it draws with are not installed.
    """
    try:
        import bokeh  # noqa: F401
        import holoviews  # noqa: F401, ICN001
        import panel  # noqa: F401, ICN001
    except ImportError as error:
        raise UsageError(
            f"the app needs {error.name or 'Panel'}, which is not installed",
            expected="Panel, HoloViews and Bokeh",
            do="pip install 'stageprof[ui]'",
        ) from error
    from stageprof_ui.store import Store

    settings, _ = settings_to_show()
    return Store(recording, settings)


def written(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Write the static report of a recording.

    Raises:
        UsageError: the packages for it are not installed.
    """
    made = store(recording)
    from stageprof_ui import report

    Path(path).write_text(report.text(made), "utf-8")


def served(recording: Recording, *, port: int = 0) -> App:
    """The app of a recording, ready to `run`.

    Raises:
        UsageError: the packages for it are not installed, or the port is in use.
    """
    made = store(recording)
    from stageprof_ui.app import page
    from stageprof_ui.server import App

    return App(lambda: page(made), port)


def show(app: App, *, browser: bool) -> None:
    """Run an app until Ctrl-C, with its address on the terminal."""
    click.echo(f"stageprof: open {app.url}", err=True)
    click.echo("stageprof: only this machine can; Ctrl-C ends it", err=True)
    try:
        app.run(browser=browser)
    except KeyboardInterrupt:
        return
