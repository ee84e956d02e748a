"""The mount table, as kernels write it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsxwarm.lustre.mounts import Mount, mount_of, parse_mounts, read_mounts

TABLE = (
    b"sysfs /sys sysfs rw,nosuid 0 0\n"
    b"/dev/nvme0n1p1 / ext4 rw,relatime 0 0\n"
    b"10.0.0.7@tcp:/fsx /fsx lustre rw,seclabel,flock,lazystatfs 0 0\n"
    b"10.0.0.7@tcp:/fsx/sub /mnt/with\\040space\\011and\\134back lustre rw 0 0\n"
    b"/dev/sdb /mnt/mdt lustre ro,svname=lustre-MDT0000,mgs,osd=osd-ldiskfs 0 0\n"
    b"fs-1.efs.eu-west-1.amazonaws.com:/ /efs nfs4 rw 0 0\n"
    b"mountpoint-s3 /s3 fuse ro 0 0\n"
    b"tmpfs /fsx/over tmpfs rw 0 0\n"
)


def kind(path: bytes) -> tuple[str, bytes]:
    found = mount_of(parse_mounts(TABLE), path)
    assert found is not None
    return found.fstype, found.path


def test_a_path_lies_on_the_longest_mount_above_it() -> None:
    assert kind(b"/fsx") == ("lustre", b"/fsx")
    assert kind(b"/fsx/a/b") == ("lustre", b"/fsx")
    assert kind(b"/fsx/over/a") == ("tmpfs", b"/fsx/over")
    assert kind(b"/fsx2/a") == ("ext4", b"/")
    assert kind(b"/") == ("ext4", b"/")


def test_what_was_mounted_over_a_mount_counts() -> None:
    mounts = [Mount("a", b"/x", "ext4"), Mount("b", b"/x", "lustre")]
    assert mount_of(mounts, b"/x/f") == mounts[1]


def test_a_server_target_is_no_client() -> None:
    assert kind(b"/mnt/mdt/f")[0] == "lustre target"


def test_escapes_are_undone_and_nothing_else_ends_a_line() -> None:
    assert kind(b"/mnt/with space\tand\\back/f") == ("lustre", b"/mnt/with space\tand\\back")
    (mount,) = parse_mounts(b"s /a\rb\xff lustre rw 0 0\n")
    assert mount == Mount("s", b"/a\rb\xff", "lustre")


def test_no_mount_for_a_path_outside_all() -> None:
    assert mount_of(parse_mounts(b"a /x ext4 rw 0 0\n"), b"/y") is None
    assert parse_mounts(b"broken line\n\n") == []


def test_a_table_is_read_from_a_file(tmp_path: Path) -> None:
    table = tmp_path / "mounts"
    table.write_bytes(TABLE)
    mounts = parse_mounts(TABLE)
    assert read_mounts(str(table))[-len(mounts) :] == mounts, "behind whatever else is mounted"
    assert {*read_mounts(str(tmp_path / "gone"))} <= {*read_mounts("/proc/self/mounts")}


def test_our_own_table_has_a_root() -> None:
    assert mount_of(read_mounts("/proc/self/mounts"), b"/") is not None


@given(st.binary())
def test_any_bytes_are_read(table: bytes) -> None:
    for mount in parse_mounts(table):
        assert mount.fstype is not None


@given(st.binary(min_size=1).filter(lambda path: b"\0" not in path))
def test_a_path_survives_the_kernel_s_escapes(path: bytes) -> None:
    written = b"".join(b"\\%03o" % byte if byte in b" \t\n\\#" else bytes([byte]) for byte in path)
    assert parse_mounts(b"src /" + written + b" lustre rw 0 0\n") == [Mount("src", b"/" + path, "lustre")]


@pytest.mark.parametrize("path", [b"/fsx", b"/fsx/"])
def test_a_slash_at_the_end_of_a_mount_point_does_not_matter(path: bytes) -> None:
    assert mount_of([Mount("s", path, "lustre")], b"/fsx/a") is not None
