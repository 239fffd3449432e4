"""`dask scheduler --preload stageprof_runtime.preload`: record a cluster from its start.

Options follow the name: `--preload stageprof_runtime.preload --stageprof-minutes 30`; as does
`distributed.scheduler.preload-argv` in Dask's configuration. See docs/clusters.md.
"""

from __future__ import annotations

from typing import Any

import click

from stageprof_runtime.parameter import ParamType

try:
    from dask.utils import parse_bytes
    from distributed import Scheduler

    from stageprof_runtime.flight.recorder import Flight, Limits, logger
except ImportError as error:  # Dask is too old, or only a part of stageprof is here
    raise click.ClickException(
        f"stageprof cannot record this cluster ({error}); expected stageprof with all that it "
        "needs; on this machine: pip install stageprof"
    ) from error


class Bytes(ParamType[int]):
    """A size: `256 MB`, `1GiB`; in bytes."""

    name = "size"
    least = 1_000_000

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """The bytes in a text."""
        try:
            size = parse_bytes(str(value))
        except ValueError:
            size = 0
        if size < self.least:
            self.fail(f"{value!r} is no size; expected 1 MB or more, as 256 MB", param, ctx)
        return int(size)


@click.command()
@click.option(
    "--stageprof-minutes", "minutes", type=click.FloatRange(min=0, min_open=True), default=10.0
)
@click.option("--stageprof-size", "size", type=Bytes(), default="256 MB")
@click.option("--stageprof-dir", "folder", default="")
@click.option("--stageprof-gil/--stageprof-no-gil", "watch_gil", default=False)
async def dask_setup(server: Any, minutes: float, size: int, folder: str, watch_gil: bool) -> None:  # noqa: FBT001
    """Begin to record a scheduler; elsewhere there is nothing to do, for it sees to its workers.

    Whatever goes wrong, the scheduler runs.
    """
    if not isinstance(server, Scheduler):
        logger.info("stageprof: nothing to do here; the scheduler's preload records its workers")
        return
    try:
        flight = Flight(Limits(minutes, size, folder, watch_gil))
        await flight.start(server)
    except Exception as error:
        logger.error("stageprof: no flight recorder: %s; the cluster runs without", error)
        return
    server.add_plugin(flight)
    logger.info(
        "stageprof: the last %g min are kept, in up to %.4g MB; to see them: "
        "stageprof attach %s --dump -o FILE",
        minutes, size / 1e6, server.address,
    )  # fmt: skip
