"""The recordings of a folder: what is there now, read one after another by a thread."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, Self

from stageprof_collectors.findings.settings import DEFAULTS, Settings
from stageprof_collectors.recording import Recording
from stageprof_runtime.errors import DamagedRecording, NotARecording, UsageError
from stageprof_ui.columns.library import Content, Entry, Head, Line, content, head, listing
from stageprof_ui.opening import Opening
from stageprof_ui.store import Store

#: Seconds between two looks at the folder.
PERIOD_S: Final = 1.0
#: Seconds that the file being read has to be done when the app ends.
PATIENCE_S: Final = 2.0
#: A file that was written to in the last seconds is read later.
SETTLED_S: Final = 2.0


class Shelf:
    """A folder of recordings, from `with` to its end.

    Args:
        folder: where they are.
        settings: of their diagnoses.
        max_memory: how much each may take, bytes; None: what suits its size.

    Raises:
        UsageError: the folder cannot be read.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        settings: Settings = DEFAULTS,
        *,
        max_memory: int | None = None,
    ) -> None:
        self.folder = Path(folder)
        self._settings, self._max_memory = settings, max_memory
        #: by name; of an earlier state of the file until the present one was read
        self._heads: dict[str, tuple[Entry, Head]] = {}
        self._contents: dict[str, tuple[Entry, Content]] = {}
        self._opening = Opening()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stageprof-shelf", daemon=True)
        try:
            self.entries = listing(self.folder)
        except OSError as error:
            raise UsageError(
                f"{folder} cannot be read ({error.strerror or error})",
                expected="a folder with recordings",
                do="check the path and its permissions",
            ) from error

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(PATIENCE_S)  # a large file is not worth waiting for

    @property
    def lines(self) -> list[Line]:
        """What is known of every recording so far."""
        return [self._line(entry) for entry in self.entries]

    def _line(self, entry: Entry) -> Line:
        """Nothing of the run before in the same file: its seconds are not those of this one."""
        none = (None, None)
        read, found = self._contents.get(entry.name, none)
        return Line(entry, self._heads.get(entry.name, none)[1], found if read == entry else None)

    def made(self, name: str, make: Callable[[Store], object]) -> Store | None:
        """The recording of a name, once a thread has opened it and made its pages; None until then.

        The name is only looked for among those of the listing: whatever else it may be, the file
        system is not asked for it.

        Args:
            name: of the file.
            make: makes what pages need.

        Raises:
            UsageError: there is none of that name.
            NotARecording, NewerRecording, DamagedRecording: it cannot be read.
        """
        entry = next((entry for entry in self.entries if entry.name == name), None)
        if entry is None:
            raise UsageError("there is no such recording in the folder", do="go back to the list")
        return self._opening.made(entry, lambda: self._make(entry, make))

    def _make(self, entry: Entry, make: Callable[[Store], object]) -> Store:
        store = Store(self._opened(entry), self._settings, sources=True)
        make(store)
        return store

    def _opened(self, entry: Entry) -> Recording:
        path = self.folder / entry.name
        if path.is_symlink():  # it was replaced since it was listed
            raise NotARecording(f"{path} is a link", expected="a file")
        recording = Recording.open(path, max_memory=self._max_memory)
        if not recording.store.places:
            raise DamagedRecording(f"{path} holds no event", do="record again")
        recording.store.spill()
        return recording

    def _run(self) -> None:
        while True:
            self._read()
            if self._stop.wait(PERIOD_S):
                return
            try:
                self.entries = listing(self.folder)
            except OSError:  # the folder is away; the list stays as it was
                continue

    def _read(self) -> None:
        """All heads, for they cost little, then everything of each, the smallest first."""
        for entry in self._changed(self._heads):
            self._heads[entry.name] = entry, head(self.folder / entry.name)
        for entry in sorted(self._changed(self._contents), key=lambda entry: entry.size):
            if self._stop.is_set():
                return
            if settled(entry, time.time()):
                found = content(self.folder / entry.name, self._settings, self._max_memory)
                self._contents[entry.name] = entry, found

    def _changed(self, read: Mapping[str, tuple[Entry, object]]) -> Iterator[Entry]:
        """What was not read as it is now."""
        for entry in self.entries:
            if self._stop.is_set():
                return
            if read.get(entry.name, (None,))[0] != entry:
                yield entry


def settled(entry: Entry, now: float) -> bool:
    """Whether a file is not being written: one that grows would be read again and again."""
    return abs(now - entry.changed / 1e9) > SETTLED_S
