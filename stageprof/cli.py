"""The command line: what the user typed becomes an exit status, and never a traceback."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import click

from stageprof.alphabet import echo
from stageprof.commands import COMMANDS
from stageprof.folder import here
from stageprof.options import complaint
from stageprof_collectors.text import safe
from stageprof_runtime.errors import StageprofError
from stageprof_runtime.version import __version__

#: Exit statuses beside a script's own: bad input, a defect of ours (as in sysexits.h), and what
#: shells give a program stopped by Ctrl-C or by a closed pipe.
BAD_INPUT, DEFECT, INTERRUPTED, PIPE_CLOSED = 2, 70, 130, 141
#: Where the pages are that help names as docs/NAME.md: who installed with pip has no such folder.
PAGES: Final = "https://github.com/stageprof/stageprof/blob/main/docs/"
_PAGE: Final = re.compile(r"docs/(\w+\.md)")
_GONE: Final = (
    "the folder that this was started in is gone; expected one that is there, for that is where "
    "paths begin; change to another"
)


class _Commands(click.Group):
    """Where whoever reads our output has gone, they end with a status that says so.

    Click and rich end with 1 then, which says "regression" of a comparison.
    """

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            _placed(error, ctx)
            raise
        except BrokenPipeError:
            _unread()
        except SystemExit as error:
            if not isinstance(error.__context__, BrokenPipeError):
                raise
            _unread()


def _placed(error: click.UsageError, ctx: click.Context) -> None:
    """Click does not say whose option it is that lacks its word; its help is the one to read."""
    named = {command.name: command for command in COMMANDS}.get(ctx.invoked_subcommand)
    if error.ctx is None and named is not None:
        error.ctx = click.Context(named, parent=ctx, info_name=named.name)


def _unread() -> NoReturn:
    # Flushing the rest at exit must not complain.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise click.exceptions.Exit(PIPE_CLOSED)


@click.group(
    cls=_Commands,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=f"Exit statuses, files and the environment: {PAGES}commands.md",
)
@click.version_option(__version__, prog_name="stageprof")
def stageprof() -> None:
    """Say where the time of a Dask computation goes, stage by stage."""


def addressed(command: click.Command) -> click.Command:
    """A command whose help ends with the addresses of the pages that it names."""
    texts = [command.help, *(getattr(param, "help", "") for param in command.params)]
    pages = dict.fromkeys(_PAGE.findall(" ".join(filter(None, texts))))
    if pages:
        command.epilog = "\n".join(["\b", "Pages named above:", *(f"  {PAGES}{p}" for p in pages)])
    for within in command.commands.values() if isinstance(command, click.Group) else ():
        addressed(within)
    return command


for command in COMMANDS:
    stageprof.add_command(addressed(command))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit status. Bad input is one line on stderr and status 2."""
    try:
        return _status(stageprof.main(argv, prog_name="stageprof", standalone_mode=False))
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except StageprofError as error:
        return _complain(str(error), error.status)
    except click.ClickException as error:
        return _complain(_usage(error), BAD_INPUT)
    except OSError as error:  # as of a full disk behind stdout
        return _complain(str(error) if here() else _GONE, BAD_INPUT)
    except Exception:  # Python's own status would be 1, which says "regression" of a comparison
        traceback.print_exc()
        return _complain("that is a defect of stageprof: please report it", DEFECT)


def _status(result: Any) -> int:
    return result if isinstance(result, int) else 0


def _complain(message: str, status: int) -> int:
    echo(safe(f"stageprof: {message}", limit=2000), err=True)
    return status


def _usage(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "stageprof"
    return f"{complaint(error)}; see {path} --help"
