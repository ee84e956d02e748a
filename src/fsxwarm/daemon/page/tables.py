"""Tables: they scroll sideways by themselves where they are too wide, and become a list of cards on a telephone.

Roles are spelt out, for browsers forget them when a table is laid out otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from fsxwarm.daemon.page.markup import Markup, tag


def cell(title: str, *content: str, **more: str | None) -> Markup:
    """A cell of a column. `title` names it where there is no head."""
    return tag("td", *content, role="cell", data_title=title or None, **more)


def header(*content: str, **more: str | None) -> Markup:
    """The cell that names its row."""
    return tag("th", *content, scope="row", role="rowheader", **more)


def row(*cells: Markup, **more: str | None) -> Markup:
    """A row."""
    return tag("tr", *cells, role="row", **more)


def simple_row(titles: Sequence[str], values: Sequence[str]) -> Markup:
    """A row of plain cells, named by its first."""
    return row(header(values[0]), *[cell(title, value) for title, value in zip(titles[1:], values[1:], strict=True)])


def column(*content: str, sort: str | None = None) -> Markup:
    """The head of a column."""
    return tag("th", *content, scope="col", role="columnheader", aria_sort=sort)


def table(caption: str, heads: Sequence[str], rows: Sequence[Markup], *, style: str | None = None) -> Markup:
    """A table with a caption for those who do not see it. Heads that are no `Markup` are titles."""
    shown = [
        head if isinstance(head, Markup) else column(head or tag("span", "bar", class_="unseen")) for head in heads
    ]
    drawn = tag(
        "table",
        tag("caption", caption, class_="unseen"),
        tag("thead", tag("tr", *shown, role="row"), role="rowgroup"),
        tag("tbody", *rows, role="rowgroup"),
        role="table",
        class_=style,
    )
    return tag("div", drawn, class_="scrolls", tabindex=0, role="region", aria_label=caption)
