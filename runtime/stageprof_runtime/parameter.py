"""The type of a command's options; what one converts to can be said since click 8.4 only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click import ParamType as ParamType
else:

    class ParamType(click.ParamType):
        """As click's, for `ParamType[float]`."""

        def __class_getitem__(cls, _: Any) -> type[ParamType]:
            return cls
