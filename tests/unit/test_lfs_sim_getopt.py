"""The option parser of the simulated lfs behaves as GNU getopt does, down to what it names in a complaint."""

from __future__ import annotations

import pytest

from fsxwarm.sim.lfs.getopt import BadOptionError, Option, Spec, parse

REQUEST = Spec(
    short={"l": True, "D": True, "a": True, "m": True, "h": False},
    long={"filelist": "l", "data": "D", "archive": "a", "mntpath": "m", "help": "h"},
)
FIND = Spec(
    short={"0": False, "t": True, "L": True},
    long={"print0": "0", "type": "t", "layout": "L"},
    single_dash=True,
    in_order=True,
)


def words(text: str) -> list[bytes]:
    return [word.encode() for word in text.split()]


@pytest.mark.parametrize(
    ("line", "options", "operands"),
    [
        ("cmd a b", [], "a b"),
        ("cmd a --filelist x b", [Option("l", b"x")], "a b"),
        ("cmd --filelist=x a", [Option("l", b"x")], "a"),
        ("cmd --file x a", [Option("l", b"x")], "a"),
        ("cmd -lx a", [Option("l", b"x")], "a"),
        ("cmd -hl x a", [Option("h", b""), Option("l", b"x")], "a"),
        ("cmd a -- -l --data", [], "a -l --data"),
        ("cmd - a", [], "- a"),
        ("cmd -l -- a", [Option("l", b"--")], "a"),
    ],
)
def test_options_are_found_wherever_they_stand(line: str, options: list[Option], operands: str) -> None:
    assert parse(REQUEST, words(line)) == (options, words(operands))


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("cmd -dash", "cmd"),
        ("cmd a -dash", "a"),
        ("cmd a b -dash c", "b"),
        ("cmd a --filelist x -dash", "a"),
        ("cmd --filelist x -dash", "x"),
        ("cmd -d a", "-d"),
        ("cmd -hd a", "-hd"),
        ("cmd --nosuch a", "--nosuch"),
        ("cmd --nosuch=1 a", "--nosuch=1"),
        ("cmd a --filelist", "--filelist"),
        ("cmd a -l", "-l"),
        ("cmd --help=1", "--help=1"),
    ],
)
def test_a_bad_option_is_named_as_lfs_names_it(line: str, named: str) -> None:
    with pytest.raises(BadOptionError) as caught:
        parse(REQUEST, words(line))
    assert caught.value.named == named.encode()


def test_find_takes_long_options_after_one_dash_and_keeps_the_order() -> None:
    options, rest = parse(FIND, words("find a b ! -type f -print0 -L released"))
    assert options == [
        Option("", b"a"),
        Option("", b"b"),
        Option("", b"!"),
        Option("t", b"f"),
        Option("0", b""),
        Option("L", b"released"),
    ]
    assert rest == []


@pytest.mark.parametrize("line", ["find -dash -L released", "find . --hsm released", "find . -x"])
def test_find_names_the_bad_word_itself(line: str) -> None:
    with pytest.raises(BadOptionError) as caught:
        parse(FIND, words(line))
    assert caught.value.named in words(line)[1:3]
