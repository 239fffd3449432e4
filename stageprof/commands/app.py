"""`stageprof app`: recordings in the browser: one, several side by side, or those of a folder."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stageprof import app as pages
from stageprof.attach import warning
from stageprof.reading import reading, roomy
from stageprof_runtime.errors import NotARecording, UsageError

if TYPE_CHECKING:
    from stageprof_ui.server import App


@click.command()
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Where; default a free one.")
@click.option("--browser/--no-browser", default=True, help="Open the default browser.")
@click.option("--insecure", is_flag=True, help="Do not warn of a connection that is not tls://.")
@roomy
def app(*, targets: tuple[str, ...], port: int, browser: bool, insecure: bool) -> None:
    """Show recordings in the browser; only this machine can open it.

    TARGET is a recording, a folder with recordings, several recordings to compare with the first
    of them, or the address of a scheduler (tcp://..) whose cluster to record and follow.
    """
    with ExitStack() as stack:
        pages.show(_app(stack, targets, port, insecure=insecure), browser=browser)


def _app(stack: ExitStack, targets: tuple[str, ...], port: int, *, insecure: bool) -> App:
    addresses = [target for target in targets if "://" in target]
    folders = [target for target in targets if Path(target).is_dir()]
    if (addresses or folders) and len(targets) > 1:
        raise UsageError(
            f"{(addresses or folders)[0]} is one of {len(targets)} arguments",
            expected="one address, one folder, or recordings",
            do="name it alone",
        )
    note = warning(addresses[0]) if addresses and not insecure else ""
    if note:
        click.echo(note, err=True)
    if addresses:
        return stack.enter_context(pages.following(addresses[0], port=port))
    if folders:
        return stack.enter_context(pages.listed(folders[0], port=port))
    for target in targets:
        _check_there(target)
    recordings = [stack.enter_context(reading(target)) for target in targets]
    if len(recordings) == 1:
        return pages.served(recordings[0], port=port)
    return pages.compared(recordings, port=port)


def _check_there(target: str) -> None:
    """Say what else is taken where a target is nothing at all."""
    if not Path(target).exists():
        raise NotARecording(
            f"no file or folder {target}",
            expected="a *.stageprof recording, a folder of them, or an address like tcp://host:8786",
            do="check the path",
        )
