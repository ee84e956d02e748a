"""The calls recorded on a real Lustre 2.15.8 (cases.jsonl): what was asked, what `lfs` printed, how it ended."""

from __future__ import annotations

import json
from base64 import b64decode
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CASES: Final = Path(__file__).with_name("cases.jsonl")


@dataclass(frozen=True, slots=True)
class Case:
    """One call. `timed_out`: it blocked in the kernel. `usage_cut`: only stderr's first line was kept."""

    id: str
    user: str
    argv: tuple[bytes, ...]
    exit: int | None
    stdout: bytes
    stderr: bytes
    timed_out: bool
    usage_cut: bool

    @property
    def command(self) -> str:
        """The sub-command of `lfs`, empty for other programs."""
        is_lfs = self.argv[0] == b"lfs" and len(self.argv) > 1
        return self.argv[1].decode() if is_lfs else ""


def load() -> list[Case]:
    """Read all cases; a name met again gets `#2` and so on behind it."""
    met: Counter[str] = Counter()
    cases = []
    for line in CASES.read_text().splitlines():
        raw = json.loads(line)
        met[raw["case"]] += 1
        again = met[raw["case"]]
        cases.append(
            Case(
                id=raw["case"] if again == 1 else f"{raw['case']}#{again}",
                user=raw["user"],
                argv=tuple(b64decode(word) for word in raw["argv"]),
                exit=raw["exit"],
                stdout=b64decode(raw["stdout"]),
                stderr=b64decode(raw["stderr"]),
                timed_out=raw["timed_out"],
                usage_cut=raw.get("usage_cut", False),
            )
        )
    return cases
