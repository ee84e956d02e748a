"""The ioctl codec against what the real lfs sent and got on Lustre 2.15.8, byte for byte."""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsxwarm.lustre import abi

GOLDEN = Path(__file__).parent.parent / "golden"


@dataclass(frozen=True)
class Ioctl:
    """One recorded call."""

    case: str
    argv: str
    number: int
    errno: int
    before: bytes
    after: bytes


def recorded() -> Iterator[Ioctl]:
    for path in sorted((GOLDEN / "ioctl").glob("*.ioctl-bytes.txt")):
        text = path.read_text()
        for call in re.finditer(r"^ioctl\(.*request (0x\w+).*\n((?:  .*\n)+)", text, re.MULTILINE):
            numbers = re.search(r"-> -?\d+ errno (\d+)", call[2])
            assert numbers is not None
            yield Ioctl(
                path.name.removesuffix(".ioctl-bytes.txt"),
                re.findall(r"^command: (.*)", text, re.MULTILINE)[0],
                int(call[1], 16),
                int(numbers[1]),
                dump(call[2], "before"),
                dump(call[2], "after"),
            )


def dump(text: str, when: str) -> bytes:
    found = re.search(rf"  {when} \(\d+ bytes\):\n((?:   \w{{4}}: .*\n)+)", text)
    return bytes.fromhex("".join(line.partition(":")[2] for line in found[1].splitlines())) if found else b""


CALLS = {call.case: call for call in recorded()}


def test_the_recordings_are_read() -> None:
    assert len(CALLS) == 14
    assert {call.number for call in CALLS.values()} >= {abi.STATE_GET, abi.STATE_SET, abi.REQUEST, abi.ACTION}
    assert [len(CALLS[case].before) for case in ("hsm_state-plain", "hsm_set", "hsm_cancel")] == [32, 24, 56]


# ---- answers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "flags"),
    [("plain", 0), ("archived", 0x09), ("released", 0x0D), ("during-restore", 0x0D)],
)
def test_states_are_read(case: str, flags: int) -> None:
    call = CALLS[f"hsm_state-{case}"]
    assert call.number == abi.STATE_GET
    assert len(abi.EMPTY_STATE) == len(call.before)
    assert abi.flags_of(call.after) == flags


@pytest.mark.parametrize(
    ("case", "progress"),
    [("idle", (1, False, 0)), ("running", (abi.RESTORE, True, 0))],
)
def test_actions_are_read(case: str, progress: tuple[int, bool, int]) -> None:
    call = CALLS[f"hsm_action-{case}"]
    assert call.number == abi.ACTION
    assert len(abi.EMPTY_ACTION) == len(call.before)
    assert abi.progress_of(call.after) == progress


def test_a_waiting_action_has_moved_nothing_whatever_its_extent() -> None:
    assert abi.progress_of(struct.pack("=IIQQ", 1, 11, 0, 2**64 - 1)) == (11, False, 0)


def test_bytes_moved_are_those_of_a_running_action() -> None:
    assert abi.progress_of(struct.pack("=IIQQ", 2, 11, 0, 2**64 - 1)) == (11, True, 2**64 - 1)


# ---- requests ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "action", "oids"),
    [
        ("hsm_restore-2-filelist-bytes", abi.RESTORE, [0x1171, 0x1172]),
        ("hsm_release", abi.RELEASE, [0x1179]),
        ("hsm_cancel", abi.CANCEL, [0x116F]),
    ],
)
def test_requests_are_those_of_lfs(case: str, action: int, oids: list[int]) -> None:
    fids = [struct.pack("=QII", 0x200000402, oid, 0) for oid in oids]
    assert CALLS[case].number == abi.REQUEST
    assert abi.request(action, fids) == CALLS[case].before


def test_a_pin_is_that_of_lfs() -> None:
    call = CALLS["hsm_set"]
    assert call.number == abi.STATE_SET
    assert abi.change(0x10, 0) == call.before


@given(fids=st.lists(st.binary(min_size=16, max_size=16), max_size=abi.MOST_ITEMS))
def test_a_request_is_24_bytes_and_32_a_file(fids: list[bytes]) -> None:
    assert len(abi.request(abi.RESTORE, fids)) == 24 + 32 * len(fids)


def test_a_request_too_long_is_not_built() -> None:
    with pytest.raises(ValueError, match="51 files"):
        abi.request(abi.RESTORE, [bytes(16)] * 51)


# ---- FIDs and layouts ----------------------------------------------------------------------------------------------


def test_a_lustre_handle_begins_with_the_fid() -> None:
    fid = struct.pack("=QII", 0x200000402, 0x116F, 0)
    assert abi.fid_of(struct.pack("=Ii", 32, 0x97) + fid + bytes(112)) == fid


@pytest.mark.parametrize(("size", "kind"), [(32, 0x01), (8, 0x81), (8, 0x97)])
def test_another_handle_has_none(size: int, kind: int) -> None:
    assert abi.fid_of(struct.pack("=Ii", size, kind) + bytes(128)) is None


def layouts() -> list[tuple[str, bytes, int | None]]:
    """Every layout that getfattr showed, with the flags in the xattr trusted.hsm beside it where root asked."""
    found = []
    for line in (GOLDEN / "cases.jsonl").read_text().splitlines():
        case = json.loads(line)
        output = base64.b64decode(case["stdout"])
        layout, hsm = (re.search(rb"%b=0x(\w+)" % name, output) for name in (rb"lustre\.lov", rb"trusted\.hsm"))
        if layout:
            flags = None if hsm is None else struct.unpack_from("<4xI", bytes.fromhex(hsm[1].decode()))[0]
            found.append((case["case"], bytes.fromhex(layout[1].decode()), flags))
    return found


def test_layouts_tell_what_the_flags_tell() -> None:
    shown = [(abi.released(layout), bool(flags & 0x04)) for _, layout, flags in layouts() if flags is not None]
    assert set(shown) == {(True, True), (False, False)}


def test_a_layout_is_told_without_rights_on_the_file() -> None:
    (layout,) = [layout for case, layout, _ in layouts() if case == "stat/getfattr-released-as-bob"]
    assert abi.released(layout)


def composite(*patterns: int) -> bytes:
    count = len(patterns)
    offsets = [32 + 48 * count + 32 * place for place in range(count)]
    size = 32 + 80 * count
    header = struct.pack("<IIIHH16x", 0x0BD60BD0, size, 1, 0, count)
    entries = b"".join(struct.pack("<IIQQII16x", place, 0x10, 0, 1, at, 32) for place, at in enumerate(offsets))
    return header + entries + b"".join(struct.pack("<II24x", 0x0BD10BD0, pattern) for pattern in patterns)


@pytest.mark.parametrize("pattern", [1, 0x100])
def test_a_composite_layout_is_told_by_its_components(pattern: int) -> None:
    assert not abi.released(composite(pattern, pattern))
    assert abi.released(composite(pattern | 0x80000000, pattern | 0x80000000))


@given(layout=st.binary(max_size=200) | st.binary(max_size=200).map(lambda rest: composite(1)[:4] + rest))
def test_no_layout_is_too_strange(layout: bytes) -> None:
    with suppress(ValueError):
        assert abi.released(layout) in (True, False)


@pytest.mark.parametrize("layout", [b"", bytes(8), composite(1)[:70], composite(), b"\xd0\x0b\xd7\x0b" + bytes(60)])
def test_a_layout_not_understood_is_no_answer(layout: bytes) -> None:
    with pytest.raises(ValueError, match="layout"):
        abi.released(layout)
