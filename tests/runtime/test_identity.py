"""An object is told from one that was made later at its address, without being kept alive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stageprof_runtime.identity import Identity


@pytest.mark.parametrize("container", [dict, list])
def test_a_container_is_the_same_as_long_as_it_holds_the_same(container: type) -> None:
    """A loop's next dict of arrays has the address of the last, its length, and its first key."""
    made: Any = {"x": np.ones(3), "y": 1} if container is dict else [np.ones(3), 1]
    identity = Identity(made)
    assert identity.is_of(made)
    made["x" if container is dict else 0] = np.ones(3)
    assert not identity.is_of(made)


def test_of_what_cannot_be_referred_to_the_address_has_to_do() -> None:
    made = {"x": 1, "y": (2, 3)}
    assert Identity(made).is_of(made)
    assert not Identity(made).is_of({"x": 2, "y": (2, 3)})
