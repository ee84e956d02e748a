"""The version of metadata servers, as the kernel's connections tell it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsxwarm.lustre.servers import Connection, parse_connections, server_version
from fsxwarm.model.entry import Trouble

IMPORT = """\
import:
    name: {name}
    target: {fsname}-MDT0000_UUID
    state: {state}
    connect_flags: [ write_grant, server_lock, version, acl, xattr, hide_root_acl ]
    connect_data:
       flags: 0xae7ffc75f06f4c7b
       instance: 4
{version}       mdt_index: 0
       ibits_known: 0x7f
    import_flags: [ replayable, pingable, connect_tried ]
    connection:
       failover_nids: [ "10.0.0.7@tcp" ]
       nids_stats:
          "10.0.0.7@tcp": {{ connects: 1, replied: 1, uptodate: uptodate, sec_ago: 94 }}
       current_connection: "10.0.0.7@tcp"
       connection_attempts: 1
       generation: 1
       in-progress_invalidations: 0
       idle: 3 sec
"""
"""As lprocfs_import_seq_show prints it."""


class Kernel:
    """A folder of connections."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def connect(self, version: str, *, mdt: int = 0, fsname: str = "fsx", state: str = "FULL", at: int = 1) -> Path:
        name = f"{fsname}-MDT{mdt:04x}-mdc-ffff888131bcc{at:03x}"
        line = f"       target_version: {version}\n" if version else ""
        file = self.folder / name / "import"
        file.parent.mkdir()
        file.write_text(IMPORT.format(name=name, fsname=fsname, state=state, version=line))
        return file

    async def version(self, fsname: str = "fsx", *, own: tuple[str, ...] = ()) -> tuple[int, ...] | Trouble:
        return await server_version(fsname, str(self.folder), os.environ, own=own)

    async def trouble(self) -> int:
        found = await self.version()
        assert isinstance(found, Trouble)
        assert found.text
        return found.errno


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path / "mdc")


async def test_it_is_what_the_servers_said_when_they_were_connected_to(kernel: Kernel) -> None:
    kernel.connect("2.16.1.0")
    assert await kernel.version() == (2, 16, 1)


async def test_the_oldest_of_all_metadata_targets_counts(kernel: Kernel) -> None:
    for mdt, version in enumerate(("2.16.1.0", "2.15.8.0", "2.17.0.0")):
        kernel.connect(version, mdt=mdt)
    assert await kernel.version() == (2, 15, 8)


async def test_versions_are_compared_as_numbers(kernel: Kernel) -> None:
    kernel.connect("2.9.0.0")
    kernel.connect("2.10.8.0", mdt=10)
    assert await kernel.version() == (2, 9, 0)


async def test_other_file_systems_do_not_count(kernel: Kernel) -> None:
    kernel.connect("2.12.9.0", fsname="fsx2")
    kernel.connect("2.12.9.0", fsname="fsx-MDT")
    kernel.connect("2.16.0.0")
    assert await kernel.version() == (2, 16, 0)
    assert await kernel.version("fsx2") == (2, 12, 9)


async def test_a_second_mount_counts_too(kernel: Kernel) -> None:
    """Two file systems may have one name: nobody can tell which connection is whose."""
    kernel.connect("2.16.0.0", at=1)
    kernel.connect("2.15.8.0", at=2)
    assert await kernel.version() == (2, 15, 8)


async def test_without_connections_it_is_unknown(kernel: Kernel) -> None:
    assert await kernel.trouble() == errno.ENOENT
    kernel.folder.rmdir()
    assert await kernel.trouble() == errno.ENOENT


async def test_one_that_is_not_up_makes_it_unknown(kernel: Kernel) -> None:
    kernel.connect("2.16.1.0")
    kernel.connect("2.16.1.0", mdt=1, state="DISCONN")
    assert await kernel.trouble() == errno.ENOTCONN


@pytest.mark.parametrize(
    "version", ["", "2.16", "2.16.1", "two.sixteen.1.0", "2.16.1.0 or so", "9999.16.1.0", "-2.16.1.0"]
)
async def test_one_without_a_version_makes_it_unknown(kernel: Kernel, version: str) -> None:
    kernel.connect("2.16.1.0")
    kernel.connect(version, mdt=1)
    assert await kernel.trouble() == errno.EBADMSG


@pytest.mark.parametrize("content", ["", "import:\n", "\0" * 100, "import:\n    name: <none>\n    state: FULL\n"])
async def test_one_that_makes_no_sense_makes_it_unknown(kernel: Kernel, content: str) -> None:
    kernel.connect("2.16.1.0")
    kernel.connect("2.16.1.0", mdt=1).write_text(content)
    assert await kernel.trouble() in {errno.EBADMSG, errno.ENOTCONN}


async def test_one_that_tells_of_another_makes_it_unknown(kernel: Kernel) -> None:
    first = kernel.connect("2.16.1.0")
    kernel.connect("2.16.1.0", mdt=1).write_text(first.read_text())
    assert await kernel.trouble() == errno.EBADMSG


async def test_one_that_cannot_be_read_makes_it_unknown(kernel: Kernel) -> None:
    kernel.connect("2.16.1.0")
    file = kernel.connect("2.16.1.0", mdt=1)
    file.unlink()
    file.mkdir()
    assert await kernel.trouble() == errno.EACCES


async def test_without_the_means_to_read_it_is_unknown(kernel: Kernel) -> None:
    kernel.connect("2.16.1.0")
    found = await server_version("fsx", str(kernel.folder), {"PATH": "/nowhere"}, own=())
    assert isinstance(found, Trouble)


async def test_a_folder_that_cannot_be_read_is_the_reason_when_there_is_no_other(
    kernel: Kernel, tmp_path: Path
) -> None:
    """For users debugfs is closed, on machines without Lustre too."""
    closed = tmp_path / "no folder"
    closed.touch()
    found = await kernel.version(own=(str(closed),))
    assert isinstance(found, Trouble)
    assert found.errno == errno.ENOTDIR
    kernel.connect("2.16.1.0")
    assert await kernel.version(own=(str(closed),)) == (2, 16, 1)


async def test_all_folders_count(kernel: Kernel, tmp_path: Path) -> None:
    kernel.connect("2.16.1.0")
    own = Kernel(tmp_path / "own")
    own.connect("2.15.8.0")
    assert await kernel.version(own=(str(own.folder),)) == (2, 15, 8)
    assert await kernel.version(own=(str(kernel.folder),)) == (2, 16, 1)


async def test_a_reader_that_hangs_is_given_up(kernel: Kernel) -> None:
    file = kernel.connect("2.16.1.0")
    file.unlink()
    os.mkfifo(file)
    found = await server_version("fsx", str(kernel.folder), os.environ, own=(), deadline=0.2)
    assert isinstance(found, Trouble)
    assert found.errno == errno.ETIMEDOUT


def test_a_line_counts_once() -> None:
    text = "import:\n    name: a\n    state: FULL\n    connection:\n       name: b\n       state: CLOSED\n"
    assert parse_connections(text) == [Connection("a", "FULL")]


@given(st.text(alphabet=st.sampled_from("import:\n name: FULL state target_version 2.16.0")))
def test_any_text_is_read(text: str) -> None:
    for connection in parse_connections(text):
        assert connection.version == () or len(connection.version) == 3
