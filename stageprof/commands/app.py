"""`stageprof app`: a recording in the browser."""

from __future__ import annotations

import click

from stageprof import app as pages
from stageprof.reading import reading


@click.command()
@click.argument("file")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Where; default a free one.")
@click.option("--browser/--no-browser", default=True, help="Open the default browser.")
def app(*, file: str, port: int, browser: bool) -> None:
    """Show the recording FILE in the browser; only this machine can open it."""
    with reading(file) as recording:
        pages.show(pages.served(recording, port=port), browser=browser)
