"""The orders in which files may be wanted."""

from __future__ import annotations

from enum import StrEnum


class Order(StrEnum):
    """`listed` takes files as they come: as the list says, folders in sorted depth-first order."""

    LISTED = "listed"
    PATH = "path"
    LARGEST = "largest"
    SMALLEST = "smallest"
    NEWEST = "newest"
