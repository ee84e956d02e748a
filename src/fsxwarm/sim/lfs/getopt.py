"""GNU getopt_long and getopt_long_only as `lfs` uses them, with the quirks that show in its messages.

`lfs` names a bad option as `argv[optind - 1]` (measured on 2.15.8): for a long or a single-letter option that is the
option itself, for a cluster such as `-dash` the argument before it, because getopt has not moved on yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Spec:
    """The options of one sub-command.

    `short` maps a letter to whether it takes an argument, `long` a long name to the letter it stands for. With
    `single_dash` long names may follow one dash (getopt_long_only). With `in_order` operands come back where they
    stand, as options without a letter (a leading `-` in getopt's option string); otherwise they are moved to the end.
    """

    short: Mapping[str, bool]
    long: Mapping[str, str]
    single_dash: bool = False
    in_order: bool = False


class Option(NamedTuple):
    """One option as met: `letter` is empty for an operand."""

    letter: str
    value: bytes


class BadOptionError(Exception):
    """An unknown or ambiguous option, or one without its argument.

    `named` is what `lfs` names in its message, `before` are the options that stand before it.
    """

    def __init__(self, named: bytes, before: Sequence[Option] = ()) -> None:
        super().__init__(named)
        self.named = named
        self.before = before


def parse(spec: Spec, argv: Sequence[bytes]) -> tuple[list[Option], list[bytes]]:
    """Split `argv` (the sub-command's name first) into its options and operands. Raises `BadOptionError`."""
    return _Parser(spec, list(argv)).run()


class _Parser:
    def __init__(self, spec: Spec, argv: list[bytes]) -> None:
        self.spec = spec
        self.argv = argv
        self.index = 1
        self.options: list[Option] = []
        self.operands: list[bytes] = []

    def run(self) -> tuple[list[Option], list[bytes]]:
        while self.index < len(self.argv):
            word = self.argv[self.index]
            if word == b"--":
                self.index += 1
                break
            if len(word) < 2 or not word.startswith(b"-"):  # noqa: PLR2004 - a lone dash is an operand
                self.index += 1
                self._operand(word)
            elif word.startswith(b"--"):
                self._long(word, word[2:])
            elif self.spec.single_dash and self._is_long(word[1:]):
                self._long(word, word[1:])
            else:
                self._cluster(word)
        return self.options, self.operands + self.argv[self.index :]

    def _operand(self, word: bytes) -> None:
        if self.spec.in_order:
            self.options.append(Option("", word))
        else:
            self.operands.append(word)

    def _is_long(self, text: bytes) -> bool:
        """Tell whether `-text` is taken for a long option: not a known letter alone, and not only a cluster."""
        if chr(text[0]) not in self.spec.short:
            return True
        return len(text) > 1 and bool(self._candidates(text.partition(b"=")[0]))

    def _candidates(self, name: bytes) -> set[str]:
        """Return the letters that a long name or an unambiguous beginning of one stands for."""
        try:
            text = name.decode("ascii")
        except UnicodeDecodeError:
            return set()
        if text in self.spec.long:
            return {self.spec.long[text]}
        return {letter for long, letter in self.spec.long.items() if long.startswith(text)}

    def _long(self, word: bytes, text: bytes) -> None:
        name, equals, value = text.partition(b"=")
        self.index += 1
        letters = self._candidates(name)
        if len(letters) != 1:
            raise BadOptionError(word, self.options)
        letter = letters.pop()
        if not self.spec.short[letter]:
            if equals:
                raise BadOptionError(word, self.options)
            value = b""
        elif not equals:
            if self.index >= len(self.argv):
                raise BadOptionError(word, self.options)
            value = self.argv[self.index]
            self.index += 1
        self.options.append(Option(letter, value))

    def _cluster(self, word: bytes) -> None:
        for position in range(1, len(word)):
            letter = chr(word[position])
            rest = word[position + 1 :]
            if letter not in self.spec.short:
                raise BadOptionError(self._named(rest), self.options)
            if self.spec.short[letter]:
                self._argument(letter, rest)
                return
            if not rest:
                self.index += 1
            self.options.append(Option(letter, b""))

    def _named(self, rest: bytes) -> bytes:
        """Return `argv[optind - 1]`: getopt leaves a word only when it has used its last letter.

        Operands met before have been moved behind the options met before: the last one stands just before this word.
        """
        if not rest:
            return self.argv[self.index]
        return self.operands[-1] if self.operands else self.argv[self.index - 1]

    def _argument(self, letter: str, rest: bytes) -> None:
        self.index += 1
        if rest:
            self.options.append(Option(letter, rest))
        elif self.index < len(self.argv):
            self.index += 1
            self.options.append(Option(letter, self.argv[self.index - 1]))
        else:
            raise BadOptionError(self.argv[self.index - 1], self.options)
