"""Which layer each key is of: as its text says, however the keys around it look."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stageprof_collectors.storage.key import text_of_key
from stageprof_collectors.storage.layered import TUPLE, Layered, layer_of

CHUNKS: list[Any] = [["sum-1a", 0], ["sum-1a", 1], ["x-2b", 0, 1], ["sum-1a", 2]]
ODD: list[Any] = [
    [["it's-3c", 0]],
    [["x" * 2000, 0], ["x" * 2000, 1]],
    ["alone-4d", "alone-5e"],
    [[], ["", 0], [3, "sum-1a"], [None], [b"bytes", 1], [["nested"], 1]],
    [7, 2.5, None, b"bytes"],
]


@pytest.mark.parametrize("others", [[], *ODD])
def test_layers_are_those_of_the_texts(others: list[Any]) -> None:
    """Most keys begin with a name: these are taken all at once."""
    keys = [*CHUNKS, *others, *CHUNKS]
    found = Layered([(np.arange(len(keys)), keys)], len(keys))
    texts = [text_of_key(key) for key in keys]
    assert found.texts() == [layer_of(text) for text in texts]
    assert found.chunked.tolist() == [text.startswith(TUPLE) for text in texts]


def test_tuples_whose_name_has_a_quote_are_of_one_layer() -> None:
    """A bag's fused tasks are called so; each was a layer of its own, of no line."""
    name = "lower-operator.methodcaller('split')-1a2b"
    found = Layered([(np.arange(2), [[name, 0], [name, 1]])], 2)

    assert found.names == [name]
    assert found.chunked.all()
    assert not found.alone
