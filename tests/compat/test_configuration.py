"""A program may change Dask's configuration as it likes; it is recorded all the same."""

from __future__ import annotations

from typing import Any

import dask
import pytest
from dask import delayed

import stageprof


@pytest.mark.smoke
@pytest.mark.parametrize("missing", ["distributed", "scheduler", "tokenize"])
def test_what_a_configuration_lacks_is_no_error_of_ours(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests of Dask's own command line reload its configuration, without distributed's part."""
    config: dict[str, Any] = dask.config.config
    monkeypatch.delitem(config, missing, raising=False)

    with stageprof.profile(gil=False) as prof:
        assert delayed(sum)([1, 2]).compute(scheduler="threads") == 3

    assert len(prof.recording.tasks()) == 1
