"""Bars and curves as SVG: colours are the style sheet's, and every one says in words what it shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from fsxwarm.daemon.page.markup import Markup, join, tag

_WIDE, _HIGH = 600.0, 120.0
_STEPS: Final = 10
_SLIVER: Final = 0.03
"""What is drawn of nothing, in the coldest colour, and left of what is not quite everything."""


def warmth(share: float) -> int:
    """The step of the scale from cold (0) to warm (10): only everything is warmest, and only nothing coldest."""
    if 0 < share < 1:
        return min(max(round(share * _STEPS), 1), _STEPS - 1)
    return _STEPS if share >= 1 else 0


def bar(share: float, said: str, *, style: str | None = None, marks: Sequence[tuple[float, str]] = ()) -> Markup:
    """A share between 0 and 1 as a bar; `marks` are lines across it, each with its meaning."""
    shown = min(max(share, _SLIVER), 1.0 if share >= 1 else 1 - _SLIVER)
    lines = [
        tag("line", tag("title", meaning), x1=at * 100, x2=at * 100, y1=0, y2=10, class_="mark")
        for at, meaning in marks
    ]
    return tag(
        "svg",
        tag("rect", x=0, y=0, width=100, height=10, class_="all"),
        tag("rect", x=0, y=0, width=shown * 100, height=10, class_=style or f"w{warmth(share)}"),
        *lines,
        class_="bar",
        viewBox="0 0 100 10",
        preserveAspectRatio="none",
        role="img",
        aria_label=said,
    )


def curve(
    title: str, values: Sequence[tuple[float, float]], show: Callable[[float], str], *, over: float, until: float,
    others: Sequence[tuple[float, float]] = (),
) -> Markup:  # fmt: skip
    """A curve of (time, value) over the `over` seconds that end `until`; `others` is a second, fainter one."""
    top = max([value for _, value in [*values, *others]], default=0.0) or 1.0
    now = values[-1][1] if values else 0.0
    said = (
        f"{title}: {show(now)} now, at most {show(max((value for _, value in values), default=0.0))} in the last hour"
    )

    def points(of: Sequence[tuple[float, float]]) -> str:
        left = until - over
        return " ".join(
            f"{(at - left) / over * _WIDE:.1f},{_HIGH - value / top * (_HIGH - 4):.1f}"
            for at, value in of
            if at >= left
        )

    parts = [tag("line", x1=0, x2=_WIDE, y1=_HIGH * n / 4, y2=_HIGH * n / 4, class_="grid") for n in range(5)]
    if others:
        parts.append(tag("polyline", points=points(others), class_="curve other"))
    parts.append(tag("polyline", points=points(values), class_="curve"))
    drawing = tag(
        "svg",
        *parts,
        class_="chart",
        viewBox=f"0 0 {_WIDE:.0f} {_HIGH:.0f}",
        preserveAspectRatio="none",
        role="img",
        aria_label=said,
    )
    scale = tag("div", tag("span", "an hour ago"), tag("span", f"top of the scale: {show(top)}"), tag("span", "now"),
                class_="scale")  # fmt: skip
    return tag("figure", tag("figcaption", join(tag("b", title), ": ", show(now))), drawing, scale)
