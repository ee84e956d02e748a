"""Lists of files, as they come from disks and pipes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fsxwarm.engine.manifest import CHUNK, read_manifest
from fsxwarm.errors import Exit, FsxwarmError

NAME = st.binary(min_size=1, max_size=40).filter(lambda name: b"\0" not in name and name.strip(b"/"))


async def _read(source: Path | str, *, nul: bool = False) -> list[bytes]:
    return [path async for chunk in read_manifest(os.fsencode(source), folder=b"/here", nul=nul) for path in chunk]


@given(st.lists(NAME, max_size=30))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
async def test_any_names_survive_nul_separation(tmp_path: Path, names: list[bytes]) -> None:
    source = tmp_path / "list"
    source.write_bytes(b"".join(b"/d/" + name.strip(b"/") + b"\0" for name in names))
    assert await _read(source, nul=True) == [b"/d/" + name.strip(b"/") for name in names]


async def test_lines_may_end_as_on_windows_be_blank_or_lack_the_last_newline(tmp_path: Path) -> None:
    source = tmp_path / "list"
    source.write_bytes(b"\xef\xbb\xbf/a\r\n\r\n\n./b\n c d \n/e/\nf/../g")
    assert await _read(source) == [b"/a", b"/here/b", b"/here/ c d ", b"/e", b"/here/f/../g"]


async def test_a_carriage_return_belongs_to_a_name_in_a_nul_list(tmp_path: Path) -> None:
    source = tmp_path / "list"
    source.write_bytes(b"/a\r\0/b\n\0")
    assert await _read(source, nul=True) == [b"/a\r", b"/b\n"]


async def test_long_lists_come_in_chunks_in_their_order(tmp_path: Path) -> None:
    source = tmp_path / "list"
    source.write_text("".join(f"/data/some/longer/path/to/{n}\n" for n in range(2 * CHUNK + 1)))
    sizes = [len(chunk) async for chunk in read_manifest(os.fsencode(source), folder=b"/", nul=False)]
    assert sizes == [CHUNK, CHUNK, 1]
    assert (await _read(source))[-1].endswith(b"/%d" % (2 * CHUNK))


async def test_a_pipe_is_read_to_its_end() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading) as _, os.fdopen(writing, "wb") as pipe:
        pipe.write(b"/a\n/b\n")
        pipe.close()
        assert await _read(f"/dev/fd/{reading}") == [b"/a", b"/b"]


async def test_an_empty_list_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "list").touch()
    assert await _read(tmp_path / "list") == []
    assert await _read("/dev/null") == []


@pytest.mark.parametrize(
    ("content", "nul", "advice"),
    [(b"/a\0/b\0", False, "-0"), (b"/a\0" * 40_000, False, "-0"), (b"/a\n" * 40_000, True, "leave -0 out")],
    ids=["short, NUL", "long, NUL", "long, newlines"],
)
async def test_the_wrong_separator_is_noticed(tmp_path: Path, content: bytes, nul: bool, advice: str) -> None:  # noqa: FBT001 - a parameter
    (tmp_path / "list").write_bytes(content)
    with pytest.raises(FsxwarmError, match=advice) as caught:
        await _read(tmp_path / "list", nul=nul)
    assert caught.value.exit is Exit.USAGE


async def test_no_list_and_a_folder_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(FsxwarmError, match="No such file") as caught:
        await _read(tmp_path / "none")
    assert caught.value.exit is Exit.USAGE
    with pytest.raises(FsxwarmError, match="is a folder"):
        await _read(tmp_path)
