"""The tables of a dataset: which there are, and of which type each column is.

A table may be empty in one recording and hold only whole numbers in another: pandas would give
its columns a type each time. Here they are the same for all, so that many files are one table.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

#: The file that says that a dataset is whole, and of what; its form.
MANIFEST: Final = "_stageprof.json"
FORM: Final = "stageprof.dataset/1"
#: What every row says beside: the recording that it is of, by its name in the dataset.
RECORDING: Final = "recording"

#: Method of a recording -> columns. `:i` is an int64, `:f` a float64, `:b` a bool, `:l` a list of
#: texts; seconds (`_s`) are float64, and all else is text.
COLUMNS: Final = {
    "tasks": "key prefix layer worker thread:i assigned_s start_s stop_s duration_s nbytes:i cpu_s"
    " gil_share:f gil_hold_s gil_wait_s status run:i",
    "steps": "stage step role wall_s share:f busy_s waited_s events:i bytes:i",
    "places": "place role host pid:i wall_s busy_s construction_s optimization_s serialization_s"
    " communication_s scheduling_s execution_s waited_s",
    "stages": "stage wall_s share:f busy_s events:i bytes:i",
    "layers": "layer prefix tasks:i file line:i wall_s construction_s optimization_s"
    " serialization_s communication_s scheduling_s execution_s before_first_task_s bytes:i",
    "lines": "file line:i layers:i tasks:i wall_s construction_s optimization_s serialization_s"
    " communication_s scheduling_s execution_s before_first_task_s bytes:i",
    "computations": "client file line:i start_s submitted_s first_task_s stop_s duration_s tasks:i"
    " graph_tasks:i wanted:i graph_bytes:i busy_s construction_s optimization_s serialization_s"
    " communication_s scheduling_s execution_s outside_s unexplained_s",
    "critical_path": "start_s stop_s seconds:f stage step place key",
    "samples": "t_s role place name value:f",
    "workers": "worker name host pid:i threads:i cpus:i memory_limit:i instrumented:b reason left:b"
    " tasks:i busy_s batches_lost:i offset_s offset_error_s",
    "objects": "number:i type nbytes:i copies:i pieces:i tasks:i variable file line:i how layer"
    " used_file used_line:i graph_bytes:i sent_bytes:i dump_s load_s task_dump_s task_load_s"
    " total_s computation:i layers:l",
    "recomputed": "key layer runs:i seconds:f reason",
    "gil": "place thread prefix function file line:i hold_s wait_s caused_s source",
    "findings": "rule severity headline cost_s saving_low_s saving_high_s file line:i variable"
    " layer prefix stage link",
}


@cache
def schema(table: str) -> pa.Schema:
    """The columns of a table with their types, in the order of the frame, and the recording's."""
    import pyarrow as pa

    kinds = {"i": pa.int64(), "f": pa.float64(), "b": pa.bool_(), "": pa.string()}
    kinds["l"] = pa.list_(pa.string())
    fields = []
    for word in COLUMNS[table].split():
        name, _, kind = word.partition(":")
        fields.append((name, kinds["f" if name.endswith("_s") else kind]))
    return pa.schema([*fields, (RECORDING, pa.string())])
