"""sbatch's command line, as far as it must be understood to put a job in front of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_FLAGS: Final = frozenset(
    {
        "contiguous", "exclusive", "get-user-env", "hold", "ignore-pbs", "immediate", "kill-on-invalid-dep", "nice",
        "no-kill", "no-requeue", "overcommit", "oversubscribe", "parsable", "propagate", "quiet", "reboot", "requeue",
        "spread-job", "test-only", "use-min-nodes", "verbose", "wait",
    }
)  # fmt: skip
"""Options without a value, or with one only behind a `=`."""
_SHORT_FLAGS: Final = frozenset("HIkOQsvW")


@dataclass(frozen=True, slots=True)
class CommandLine:
    """`options` of sbatch, the batch script, and its own arguments."""

    options: tuple[str, ...]
    script: str
    arguments: tuple[str, ...]

    def values(self, long: str, short: str = "") -> list[str]:
        """The values that an option was given."""
        found, words = [], list(self.options)
        for place, word in enumerate(words):
            following = words[place + 1] if place + 1 < len(words) else ""
            if word == f"--{long}" or (short and word == f"-{short}"):
                found.append(following)
            elif word.startswith(f"--{long}="):
                found.append(word.partition("=")[2])
            elif short and word.startswith(f"-{short}") and not word.startswith("--"):
                found.append(word[2:])
        return found


def parse_sbatch(words: Sequence[str]) -> CommandLine:
    """Tell sbatch's options from the script and its arguments. ValueError when there is no script."""
    place = 0
    while place < len(words) and words[place].startswith("-") and words[place] not in {"-", "--"}:
        place += 2 if _takes_next(words[place]) else 1
    options = tuple(words[:place])
    if place < len(words) and words[place] == "--":
        place += 1
    if place >= len(words):
        raise ValueError("there is no batch script: write its name behind sbatch's options")
    return CommandLine(options, words[place], tuple(words[place + 1 :]))


def _takes_next(word: str) -> bool:
    """Whether the next word is this option's value."""
    if word.startswith("--"):
        return "=" not in word and word[2:] not in _FLAGS
    return len(word) == 2 and word[1] not in _SHORT_FLAGS  # noqa: PLR2004 - a minus and a letter
