"""Globs: what people expect of them, and any bytes as names."""

import fnmatch
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsxwarm.model.patterns import compile_globs, matcher


def takes(glob: str, path: str | bytes) -> bool:
    return matcher([glob], [])(path if isinstance(path, bytes) else path.encode(), False)


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("*.tar", ["a.tar", "x/a.tar", "x/y/.tar", "a\n.tar"], ["a.tar.gz", "a.TAR", "a.tar/b"]),
        ("cache", ["cache", "a/cache"], ["cache/a", "mycache", "cache2"]),
        ("cache/", ["cache", "a/cache"], ["cache/a"]),
        ("/cache", ["cache"], ["a/cache"]),
        ("a/*.txt", ["a/x.txt"], ["b/a/x.txt", "a/b/x.txt", "x.txt"]),
        ("a//b", ["a/b"], ["a/x/b"]),
        ("**/*.txt", ["x.txt", "a/x.txt", "a/b/x.txt"], ["x.txt/a"]),
        ("a/**", ["a/x", "a/b/x"], ["a", "ab/x", "b/a/x"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/xb", "x/a/b"]),
        ("**/**/a", ["a", "x/a", "x/y/a"], ["xa"]),
        ("**", ["a", "a/b"], []),
        ("a**b/c", ["ab/c", "axb/c", "ax/yb/c"], ["b/c"]),
        ("?", ["a", "é", "日", "x/a"], ["ab", ""]),
        ("a?b", ["axb", "aéb"], ["a/b", "ab"]),
        ("[ab].txt", ["a.txt", "b.txt"], ["c.txt", "ab.txt"]),
        ("[é-ü].txt", ["ê.txt"], ["e.txt"]),
        ("[!a-c]", ["d", "é"], ["a", "b"]),
        ("[^a-c]", ["d"], ["b"]),
        ("x[!a]y", ["xby"], ["x/y", "xay"]),
        ("x[+-9]y", ["x+y", "x0y"], ["x/y"]),
        ("[]]", ["]"], ["a"]),
        ("[!]]", ["a"], ["]"]),
        ("[a-]", ["a", "-"], ["b"]),
        ("[-a]", ["a", "-"], ["b"]),
        ("[a&&b~~||c]", ["a", "&", "~", "|"], ["d"]),
        ("[[]x", ["[x"], ["x"]),
        ("[\\d]", ["\\", "d"], ["1"]),
        ("a{1,2}", ["a{1,2}"], ["a1"]),
        ("a.b+(c)$", ["a.b+(c)$"], ["axb+(c)$"]),
        ("*a*b", ["ab", "xaybb", "aab"], ["ba", "a/b"]),
        ("*ab*ab", ["abab", "abxab", "ababab"], ["ab", "aab"]),
    ],
)
def test_what_a_glob_matches(glob: str, yes: list[str], no: list[str]) -> None:
    assert [path for path in yes if not takes(glob, path)] == []
    assert [path for path in no if takes(glob, path)] == []


@pytest.mark.parametrize("glob", ["[", "a[", "[]", "[!]", "[^", "x[!", "[a/b]", "", "/", "//", "[z-a]"])
def test_what_is_no_pattern_says_so(glob: str) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(glob))):
        compile_globs([glob])


def test_exclusion_wins_and_inclusion_asks_of_files_only() -> None:
    wanted = matcher(["*.tar"], ["old", "tmp/**"])
    assert wanted(b"a.tar", False)
    assert not wanted(b"a.txt", False)
    assert wanted(b"a.txt", True), "a folder is entered whatever its name"
    assert not wanted(b"x/old", True)
    assert not wanted(b"old", False)
    assert not wanted(b"tmp/a.tar", False)
    assert wanted(b"tmp", True)


def test_nothing_given_wants_all() -> None:
    assert compile_globs([]) is None
    assert matcher([], [])(b"any\xff", False)


def test_any_of_several_will_do() -> None:
    wanted = matcher(["*.a", "b/*"], [])
    assert wanted(b"x/y.a", False)
    assert wanted(b"b/z", False)
    assert not wanted(b"c/z", False)


def test_a_byte_that_is_no_text_is_one_character() -> None:
    assert takes("?", b"\xff")
    assert not takes("?", b"\xff\xfe")
    assert takes("*.bin", b"\xff\n\xfe.bin")
    assert takes("\udcff*", b"\xffx"), "as the command line hands it over"


def test_many_stars_take_no_time_that_explodes() -> None:
    assert not takes("*a" * 40 + "b", "a" * 255)
    assert not takes("**/" * 6 + "*a*a*a*b", "/".join(["a" * 20] * 12))


globs = st.text(st.sampled_from("ab*?[]!-/é"), min_size=1, max_size=12)
paths = st.lists(st.binary(min_size=1, max_size=12).map(lambda name: name.replace(b"/", b"_")), min_size=1, max_size=4)


@given(globs, paths)
def test_any_name_gets_an_answer(glob: str, parts: list[bytes]) -> None:
    try:
        wanted = matcher([glob], [])
    except ValueError as error:
        assert repr(glob) in str(error)  # noqa: PT017 - whether it raises depends on the glob
        return
    path = b"/".join(parts)
    assert wanted(path, True)
    assert matcher([], [glob])(path, False) is not wanted(path, False)


@given(st.text(st.sampled_from("ab*?"), min_size=1, max_size=10).filter(lambda glob: "**" not in glob), paths)
def test_a_glob_without_slash_is_fnmatch_on_the_last_part(glob: str, parts: list[bytes]) -> None:
    name = parts[-1].decode("utf-8", "surrogateescape")
    assert takes(glob, b"/".join(parts)) == fnmatch.fnmatchcase(name, glob)


def reference(glob: list[str], path: list[str]) -> bool:
    """Match part by part, by its definition."""
    if not glob:
        return not path
    if glob[0] == "**":
        if len(glob) == 1:
            return bool(path)
        return any(reference(glob[1:], path[start:]) for start in range(len(path) + 1))
    return bool(path) and fnmatch.fnmatchcase(path[0], glob[0]) and reference(glob[1:], path[1:])


parts_of_globs = st.sampled_from(["**", "*", "a", "b", "a*", "*b", "?", "*a*b*"])


@given(
    st.lists(parts_of_globs, min_size=2, max_size=5),
    st.lists(st.text(st.sampled_from("ab"), min_size=1, max_size=4), min_size=1, max_size=5),
)
def test_a_glob_with_slashes_is_the_parts_one_by_one(glob: list[str], path: list[str]) -> None:
    assert takes("/".join(glob), "/".join(path)) == reference(glob, path)
