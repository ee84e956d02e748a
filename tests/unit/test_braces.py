"""Braces expand as bash expands them."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsxwarm.model.braces import expand_braces


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("a", ["a"]),
        ("a-{0..3}.tar", ["a-0.tar", "a-1.tar", "a-2.tar", "a-3.tar"]),
        ("{08..10}", ["08", "09", "10"]),
        ("{3..1}", ["3", "2", "1"]),
        ("{0..10..5}", ["0", "5", "10"]),
        ("{-1..1}", ["-1", "0", "1"]),
        ("{a,b}{1,2}", ["a1", "a2", "b1", "b2"]),
        ("{a,b{c,d}}", ["a", "bc", "bd"]),
        ("{a,}", ["a", ""]),
        ("{a}", ["{a}"]),
        ("{", ["{"]),
        ("{a,b", ["{a,b"]),
        ("}{,", ["}{,"]),
        ("{}{a,b}", ["{}a", "{}b"]),
        (r"\{a,b\}", ["{a,b}"]),
    ],
)
def test_patterns_expand(pattern: str, names: list[str]) -> None:
    assert expand_braces(pattern) == names


@given(st.text("ab{},.0129-", max_size=12))
@settings(max_examples=300)
def test_any_text_expands_without_an_error(pattern: str) -> None:
    try:
        names = expand_braces(pattern)
    except ValueError as error:
        assert "more than" in str(error)  # noqa: PT017 - both ways are right
    else:
        assert names


@given(
    st.lists(
        st.sampled_from(["a", "x.tar", "{1..3}", "{p,q}", "{01..03}", "{u,v{1,2}}", "{z}"]), min_size=1, max_size=4
    )
)
@settings(max_examples=25, deadline=None)
def test_bash_agrees(parts: list[str]) -> None:
    pattern = "-".join(parts)
    said = subprocess.run(["bash", "-c", f"printf '%s\\n' {pattern}"], capture_output=True, text=True, check=True)
    assert expand_braces(pattern) == said.stdout.splitlines()


def test_too_many_names_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 1,000,000 names"):
        expand_braces("{0..99999}{0..99999}")
