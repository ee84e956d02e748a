"""Plain tables for benches, which remember what they showed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

shown: list[dict[str, object]] = []
"""All tables printed so far, in JSON's terms."""


def table(
    title: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    figures: Sequence[Mapping[str, object]] = (),
) -> None:
    """Print a table: text to the left in the first column, numbers to the right in the others.

    `figures` are the rows as a program wants them, in JSON's terms: unrounded, by name.
    """
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    print(f"\n{title}")
    for row in (head, ["─" * width for width in widths], *rows):
        print("  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]))
    shown.append(
        {
            "title": title,
            "columns": list(head),
            "rows": [list(row) for row in rows],
            "figures": [dict(row) for row in figures],
        }
    )
