"""Workers that went because they could not load what they were sent."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from stageprof_collectors.findings.finding import Fix
from stageprof_collectors.findings.phrase import made_at, word
from stageprof_collectors.text import line_of
from stageprof_runtime.probes.failure import UNLOADED

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_LACKS = (
    "Have `{module}` where the workers run. If it is a package, install it there (in the image or "
    "environment that they start from; `PipInstall` below does it for a cluster that is there "
    "already). If it is a file of your own, send it. Dask closes a worker that cannot load a "
    "task, and its nanny with it; once none is left the computation waits for ever."
)
_LACKS_CODE = """\
from distributed import Client, PipInstall

client = Client.current()  # yours
client.upload_file("{module}.py")  # if it is a file of your own; if it is a package:
# client.register_plugin(PipInstall(["{module}"]))"""

_OTHER = (
    "Loading it raised {error}{where} on the workers: most often they have other versions of a "
    "package than the client has, which `client.get_versions(check=True)` tells, or a class "
    "cannot be loaded from what pickle wrote of it. Dask closes a worker that cannot load a task, "
    "and its nanny with it; once none is left the computation waits for ever."
)

#: Dask closes a worker at once that could not load its tasks; it takes less, ns.
SOON_NS: Final = 10_000_000_000


class Unloaded(NamedTuple):
    """What most of the workers that went could not load, and which they are, by their addresses."""

    error: str
    #: the module that is not there; "" if it is none
    module: str
    file: str
    line: int
    workers: frozenset[str]

    @property
    def why(self) -> str:
        """In a few words: `` `geo` is not there``, or the exception and where it was raised."""
        if self.module:
            return f"`{self.module}` is not there"
        return f"{self.error or 'an exception'}{made_at(self.file, self.line)}"

    @property
    def fix(self) -> Fix:
        """What to do about it."""
        if not self.module:
            where = made_at(self.file, self.line)
            return Fix(_OTHER.format(error=self.error or "an exception", where=where))
        module = self.module.partition(".")[0]
        name = word(module, "your_module")
        return Fix(_LACKS.format(module=module), _LACKS_CODE.format(module=name))


def unloaded(recording: Recording) -> Unloaded | None:
    """The reason that workers gave most, of those that went unexpectedly; None if none did."""
    lost = {loss.worker: loss.t for loss in recording.incidents.losses if not loss.expected}
    places = recording.store.places
    said = Counter(
        (label, places[place].name)
        for t, place, label in recording.timeline.marks(UNLOADED)
        if abs(lost.get(places[place].name, t + 2 * SOON_NS) - t) < SOON_NS
        and label.count("\t") == 2
    )
    if not said:
        return None
    most = Counter(label for label, _ in said).most_common(1)[0][0]
    error, module, where = most.split("\t")
    workers = frozenset(worker for label, worker in said if label == most)
    return Unloaded(error, module, *line_of(where), workers)
