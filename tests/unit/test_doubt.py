"""Flags are read before asking until they have told nothing new often enough."""

from __future__ import annotations

from fsxwarm.model.doubt import Doubt

MB = 1 << 20


def test_read_until_nothing_new_was_told_and_now_and_then_from_then_on() -> None:
    doubt = Doubt(3)
    for _ in range(3):
        assert doubt.about(MB)
        doubt.read(MB, surprise=False)
    asked = [doubt.about(MB) for _ in range(1000)]
    assert sum(asked) == 10
    assert not any(asked[:90])


def test_a_surprise_brings_the_reading_back_for_files_of_that_size() -> None:
    doubt = Doubt(1)
    doubt.read(MB, surprise=False)
    doubt.read(100, surprise=False)
    doubt.read(MB, surprise=True)
    assert doubt.about(MB)
    assert not doubt.about(100)
