"""The recordings of a folder: what is there now, read one after another by a thread."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Final, Self
from weakref import WeakSet

from stageprof_collectors.findings.settings import DEFAULTS, Settings
from stageprof_collectors.recording import Recording
from stageprof_runtime.errors import DamagedRecording, NotARecording, UsageError
from stageprof_ui.columns.library import Content, Entry, Head, Line, content, head, listing
from stageprof_ui.store import Store

#: Seconds between two looks at the folder.
PERIOD_S: Final = 1.0
#: Seconds that the file being read has to be done when the app ends.
PATIENCE_S: Final = 2.0
#: A file that was written to in the last seconds is read later.
SETTLED_S: Final = 2.0
#: Recordings that are kept open because a page may be asked for again.
OPEN: Final = 3
#: Seconds that a page is waited for before it says that the recording is being opened.
SOON_S: Final = 0.5


class Shelf:
    """A folder of recordings, from `with` to its end.

    Args:
        folder: where they are.
        settings: of their diagnoses.

    Raises:
        UsageError: the folder cannot be read.
    """

    def __init__(self, folder: str | os.PathLike[str], settings: Settings = DEFAULTS) -> None:
        self.folder = Path(folder)
        self._settings = settings
        #: by name; of an earlier state of the file until the present one was read
        self._heads: dict[str, tuple[Entry, Head]] = {}
        self._contents: dict[str, tuple[Entry, Content]] = {}
        self._open: OrderedDict[Entry, Store] = OrderedDict()
        #: those that a thread works on, by name, and those whose pages are made
        self._making: dict[str, Future[Store]] = {}
        self._finished: WeakSet[Store] = WeakSet()
        self._lock = threading.Lock()
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
        none = (None, None)
        return [
            Line(e, self._heads.get(e.name, none)[1], self._contents.get(e.name, none)[1])
            for e in self.entries
        ]

    def store(self, name: str) -> Store:
        """The recording of a name.

        The name is only looked for among those of the listing: whatever else it may be, the file
        system is not asked for it.

        Raises:
            UsageError: there is none of that name.
            NotARecording, NewerRecording, DamagedRecording: it cannot be read.
        """
        entry = next((entry for entry in self.entries if entry.name == name), None)
        if entry is None:
            raise UsageError("there is no such recording in the folder", do="go back to the list")
        with self._lock:
            if entry not in self._open:
                self._open[entry] = Store(self._opened(entry), self._settings, sources=True)
            self._open.move_to_end(entry)
            while len(self._open) > OPEN:
                self._open.popitem(last=False)
            return self._open[entry]

    def made(self, name: str, make: Callable[[Store], object]) -> Store | None:
        """The recording of a name, once a thread has made its pages; None until then.

        Args:
            name: as for `store`.
            make: makes what pages need.

        Raises:
            UsageError, NotARecording, NewerRecording, DamagedRecording: as `store`.
        """
        making = self._making.get(name)
        if making is None:
            making = self._making[name] = Future()
            job = threading.Thread(target=self._make, args=(name, make, making), daemon=True)
            job.name = "stageprof-open"
            job.start()
            wait([making], SOON_S)  # who asks again does not: the loop is that of all who look
        if not making.done():
            return None
        del self._making[name]
        return making.result()

    def _make(self, name: str, make: Callable[[Store], object], making: Future[Store]) -> None:
        try:
            store = self.store(name)
            if store not in self._finished:
                make(store)
                self._finished.add(store)
            making.set_result(store)
        except BaseException as error:  # whoever asked for it is told
            making.set_exception(error)

    def _opened(self, entry: Entry) -> Recording:
        path = self.folder / entry.name
        if path.is_symlink():  # it was replaced since it was listed
            raise NotARecording(f"{path} is a link", expected="a file")
        recording = Recording.open(path)
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
                found = content(self.folder / entry.name, self._settings)
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
