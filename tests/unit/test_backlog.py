"""The backlog gives back what was put in, in order, however much of it went through the temporary file."""

from __future__ import annotations

import resource
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsxwarm.engine.backlog import Backlog
from fsxwarm.errors import FsxwarmError
from fsxwarm.model.entry import Entry, Resident
from fsxwarm.model.record import pack_all, unpack_all

numbers = st.integers(0, 2**63 - 1)
times = st.integers(-(2**63), 2**63 - 1)
small = st.integers(0, 2**32 - 1)
paths = st.binary(min_size=1, max_size=5000)
entries = st.builds(
    Entry, paths, numbers, numbers, numbers, numbers, times, times, times, small, small, small
)  # fmt: skip
items = st.one_of(entries, st.builds(Resident, numbers, numbers))


@given(st.lists(items, max_size=20))
def test_records_are_read_as_they_were_written(given_items: list[Entry | Resident]) -> None:
    assert unpack_all(pack_all(given_items)) == given_items


@given(
    st.lists(st.one_of(st.integers(1, 7000), st.integers(-3000, -1)), max_size=30),
    st.integers(0, 5000),
)
def test_first_in_first_out_whatever_the_limit(steps: list[int], in_memory: int) -> None:
    backlog, reference, number = Backlog(in_memory), deque[Resident](), 0
    for step in steps:
        if step > 0:
            new = [Resident(number + i, 0) for i in range(step)]
            number += step
            backlog.put(new)
            reference.extend(new)
        else:
            for item in backlog.take(-step):
                assert item == reference.popleft()
        assert bool(backlog) is bool(reference)
    while backlog:
        for item in backlog.take(999):
            assert item == reference.popleft()
    assert not reference
    backlog.close()


def test_a_disk_without_room_is_told_with_where_and_what_to_do() -> None:
    backlog = Backlog(0)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(FsxwarmError, match=r"kept in a file in /\S+: File too large \(make room there"):
            backlog.put([Resident(number, 0) for number in range(3000)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    backlog.close()
