"""What runs beside Dask: the vocabulary of stages, and the probes that emit timed events.

The only package of stageprof that is imported on schedulers and workers; it needs nothing but
the standard library, dask, distributed and what they bring (msgpack, psutil, cloudpickle).
"""

from __future__ import annotations

from stageprof_runtime.process import installed as installed
from stageprof_runtime.stage import Stage as Stage
from stageprof_runtime.version import __version__ as __version__

__all__ = ["Stage", "__version__", "installed"]
