"""What Dask removes to write it anew stays where nothing is to be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from stageprof_runtime.arrival import arrived
from stageprof_runtime.patch import Undo, replace

#: Where there is what writes Parquet, and with `overwrite` removes what is there first.
_WRITERS: Final = (
    "dask.dataframe.dask_expr.io.parquet", "dask.dataframe.dask_expr", "dask.dataframe",
)  # fmt: skip


def kept() -> Undo:
    """Have nothing removed from now on, until undone."""
    on = [True]

    def keeping(to_parquet: Callable[..., Any]) -> Callable[..., Any]:
        def written(*args: Any, **kwargs: Any) -> Any:
            # Modules that were imported meanwhile may have taken this over.
            if on and kwargs.get("overwrite"):
                kwargs["overwrite"] = False
            return to_parquet(*args, **kwargs)

        return written

    undo = arrived(_WRITERS, lambda _, m: [replace(m, "to_parquet", keeping, limited=False)])

    def over() -> None:
        on.clear()
        undo()

    return over
