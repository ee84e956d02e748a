"""HTML in which text is text: whatever is not made here is escaped, and what a reader could not see is spelt out."""

from __future__ import annotations

from html import escape
from typing import Final

from fsxwarm.model.visible import visible

_EMPTY: Final = frozenset({"meta", "link", "input", "br"})


class Markup(str):
    """HTML that is safe to put into a page. Only this module makes it of anything."""

    __slots__ = ()


def text(value: str) -> Markup:
    """Escape text; control, direction and unassigned characters are spelt out."""
    return Markup(escape(visible(value), quote=True))


def join(*parts: str) -> Markup:
    """Parts one after another; those that are no `Markup` are escaped."""
    return Markup("".join(part if isinstance(part, Markup) else text(part) for part in parts))


def tag(name: str, /, *content: str, **attributes: str | float | bool | None) -> Markup:
    """An element. In names of attributes a last `_` is left out, others are `-`; True: without a value, None: not."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _EMPTY:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*content)}</{name}>")


def _attribute(key: str, value: str | float | bool | None) -> str:  # noqa: FBT001 - as it stands in the element
    name = key.removesuffix("_").replace("_", "-")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    shown = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return f' {name}="{value if isinstance(value, Markup) else text(shown)}"'


def document(title: str, *body: str, head: str = Markup("")) -> str:
    """A whole page."""
    return "<!doctype html>\n" + tag(
        "html",
        tag(
            "head",
            tag("meta", charset="utf-8"),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("title", title),
            tag("link", rel="stylesheet", href="/static/page.css"),
            tag("link", rel="icon", href="/static/icon.svg", type="image/svg+xml"),
            head,
        ),
        tag("body", *body),
        lang="en",
    )
