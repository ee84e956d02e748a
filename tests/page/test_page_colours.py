"""The style sheet's colours: readable on their grounds, and the scale told apart by the colour-blind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fsxwarm

CSS = (Path(fsxwarm.__file__).parent / "daemon/page/page.css").read_text()
Colour = tuple[float, float, float]

# Machado, Oliveira and Fernandes 2009, full severity, on linear RGB.
SIGHT = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}


def linear(code: str) -> Colour:
    parts = [int(code[start : start + 2], 16) / 255 for start in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return red, green, blue


def luminance(code: str) -> float:
    red, green, blue = linear(code)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def palettes() -> list[dict[str, str]]:
    light, dark = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
    return [dict(re.findall(r"--(\w+): #([0-9a-f]{6});", part)) for part in (light, dark)]


@pytest.mark.parametrize("palette", palettes(), ids=["light", "dark"])
@pytest.mark.parametrize("ground", ["ground", "panel"])
@pytest.mark.parametrize("text", ["text", "faint", "link", "bad"])
def test_text_can_be_read(palette: dict[str, str], ground: str, text: str) -> None:
    """WCAG 2.2, AA."""
    assert contrast(palette[text], palette[ground]) >= 4.5


@pytest.mark.parametrize("palette", palettes(), ids=["light", "dark"])
@pytest.mark.parametrize("line", ["curve", "other", "used", "done"])
def test_what_is_drawn_can_be_seen(palette: dict[str, str], line: str) -> None:
    assert contrast(palette[line], palette["panel"]) >= 3.0


@pytest.mark.parametrize("sight", SIGHT)
def test_cold_and_warm_are_told_apart(sight: str) -> None:
    """Any step of the cold half from any of the warm half, by what is left of colour and lightness."""
    scale = {int(step): code for step, code in re.findall(r"\.w(\d+) \{ fill: #([0-9a-f]{6});", CSS)}
    assert sorted(scale) == list(range(11))
    seen = {
        step: [sum(part * weight for part, weight in zip(linear(code), row, strict=True)) for row in SIGHT[sight]]
        for step, code in scale.items()
    }
    for cold in range(5):
        for warm in range(6, 11):
            distance = sum((a - b) ** 2 for a, b in zip(seen[cold], seen[warm], strict=True)) ** 0.5
            assert distance > 0.1, (cold, warm)
