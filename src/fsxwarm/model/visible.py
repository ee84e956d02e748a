"""Text in which nothing is hidden: what a reader could not see, or a terminal would obey, is spelt out."""

from __future__ import annotations

import unicodedata
from typing import Final

_UNSEEN: Final = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def visible(text: str) -> str:
    """Spell out control, direction, unassigned and undecodable characters."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_spelt(char) if unicodedata.category(char) in _UNSEEN else char for char in text)


def _spelt(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # noqa: PLR2004 - a byte that is no UTF-8, as os.fsdecode keeps it
        return f"\\x{code - 0xDC00:02x}"
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char) or char.encode("unicode_escape").decode()
