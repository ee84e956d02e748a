"""Walks and look-ups on a local disk: what is found, in which order, and what is left alone."""

import errno
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsxwarm.lustre.pool import Rights
from fsxwarm.lustre.tree import HelperTree
from fsxwarm.model.entry import Entry, Resident, Trouble
from fsxwarm.ports.tree import NOT_REGULAR, Batch, Filters, Place

ALL = Filters()
DATA = b"x" * 5000


@pytest.fixture
async def tree() -> AsyncIterator[HelperTree]:
    tree = HelperTree()
    yield tree
    await tree.close()


async def walk(tree: HelperTree, root: Path | bytes, filters: Filters = ALL, *, whole: bool = True) -> list[Batch]:
    place = await tree.resolve(os.fsencode(root))
    assert isinstance(place, Place)
    return [batch async for batch in tree.walk(place, filters, whole=whole)]


async def listed(tree: HelperTree, *lists: Sequence[bytes], filters: Filters = ALL, whole: bool = True) -> list[Batch]:
    async def paths() -> AsyncIterator[Sequence[bytes]]:
        for one in lists:
            yield one

    return [batch async for batch in tree.listed(paths(), filters, whole=whole)]


def entries(batches: list[Batch]) -> list[Entry]:
    return [item for batch in batches for item in batch.items if isinstance(item, Entry)]


def names(batches: list[Batch], root: Path) -> set[bytes]:
    return {os.path.relpath(entry.path, os.fsencode(root)) for entry in entries(batches)}


def counted(batches: list[Batch]) -> Resident:
    runs = [item for batch in batches for item in batch.items if isinstance(item, Resident)]
    return Resident(sum(run.files for run in runs), sum(run.bytes for run in runs))


def troubles(batches: list[Batch]) -> list[Trouble]:
    return [trouble for batch in batches for trouble in batch.troubles]


def resident(path: Path) -> Path:
    """Make a file whose blocks are on the disk, whatever the file system delays."""
    with path.open("wb") as file:
        file.write(DATA)
        os.fsync(file.fileno())
    return path


def sparse(path: Path, size: int = 5000) -> Path:
    """Make a file as a released one looks: a size and no blocks."""
    with path.open("wb") as file:
        file.truncate(size)
    return path


async def test_an_entry_is_what_stat_says(tree: HelperTree, tmp_path: Path) -> None:
    info = sparse(tmp_path / "a").stat()
    (entry,) = entries(await walk(tree, tmp_path))
    assert entry == Entry(
        os.fsencode(tmp_path / "a"), info.st_dev, info.st_ino, 5000, info.st_blocks,
        int(info.st_mtime), int(info.st_atime), int(info.st_ctime), 1, info.st_uid, info.st_mode,
    )  # fmt: skip


async def test_proven_residents_are_counted_between_the_entries(tree: HelperTree, tmp_path: Path) -> None:
    for number in range(10):
        (sparse if number % 3 == 0 else resident)(tmp_path / f"f{number}")
    os.link(resident(tmp_path / "linked"), tmp_path / "link")
    (tmp_path / "empty").touch()
    batches = await walk(tree, tmp_path, whole=False)
    assert names(batches, tmp_path) == {b"f0", b"f3", b"f6", b"f9", b"linked", b"link", b"empty"}
    assert counted(batches) == Resident(6, 6 * len(DATA))
    order = [entry.name for entry in os.scandir(tmp_path)]
    got: list[int] = []
    for item in batches[0].items:
        got += [1] if isinstance(item, Entry) else [0] * item.files
    assert got == [int(name in {"f0", "f3", "f6", "f9", "linked", "link", "empty"}) for name in order]


async def test_no_symlink_is_followed(tree: HelperTree, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    resident(outside / "x")
    root = tmp_path / "root"
    (root / "d").mkdir(parents=True)
    sparse(root / "d" / "f")
    (root / "to-folder").symlink_to(outside)
    (root / "to-file").symlink_to(outside / "x")
    (root / "dangling").symlink_to(tmp_path / "gone")
    (root / "d" / "loop").symlink_to(root)
    (root / "self").symlink_to(root / "self")
    batches = await walk(tree, root)
    assert names(batches, root) == {b"d/f"}
    assert sum(batch.skipped for batch in batches) == 5


async def test_a_link_that_is_the_root_is_followed(tree: HelperTree, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    sparse(tmp_path / "real" / "f")
    (tmp_path / "link").symlink_to("real")
    assert [entry.path for entry in entries(await walk(tree, tmp_path / "link"))] == [os.fsencode(tmp_path / "real/f")]


async def test_what_is_no_regular_file_is_only_counted(tree: HelperTree, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    sparse(tmp_path / "f")
    batches = await walk(tree, tmp_path)
    assert names(batches, tmp_path) == {b"f"}
    assert [batch.skipped for batch in batches] == [1]


async def test_no_name_is_too_odd(tree: HelperTree, tmp_path: Path) -> None:
    odd = [b"new\nline", b"\xff\xfe", b"-rf", b" ", b"*", b"n" * 255, b"\\x", b"p: (0x0000000d) released", "é".encode()]
    root = os.fsencode(tmp_path)
    for name in odd:
        folder = root + b"/" + name
        os.mkdir(folder)  # noqa: PTH102 - the name is bytes
        for inner in odd:
            os.close(os.open(folder + b"/" + inner, os.O_CREAT | os.O_WRONLY))
    batches = await walk(tree, tmp_path)
    assert [batch.folder for batch in batches] == sorted(root + b"/" + name for name in odd)
    paths = [entry.path for entry in entries(batches)]
    assert sorted(paths) == sorted(root + b"/" + name + b"/" + inner for name in odd for inner in odd)
    assert [entry.path for entry in entries(await listed(tree, paths))] == paths
    assert not any(isinstance(found, Trouble) for found in await tree.stat(paths))


async def test_an_empty_folder_is_no_trouble(tree: HelperTree, tmp_path: Path) -> None:
    assert await walk(tree, tmp_path) == []


async def test_folders_come_sorted_depth_first_and_in_one_piece(tree: HelperTree, tmp_path: Path) -> None:
    for name in ["b/x/1", "b/x/2", "a/z", "a/y/deep/er", "c", "B", "a.b"]:
        (tmp_path / name).mkdir(parents=True)
    for folder in ["", "b", "b/x", "b/x/1", "b/x/2", "a", "a/z", "a/y", "a/y/deep", "a/y/deep/er", "c", "B", "a.b"]:
        for number in range(3):
            sparse(tmp_path / folder / f"f{number}")
    batches = await walk(tree, tmp_path)
    got = [batch.folder.removeprefix(os.fsencode(tmp_path)).decode().removeprefix("/") for batch in batches]
    assert got == [
        "", "B", "a", "a/y", "a/y/deep", "a/y/deep/er", "a/z", "a.b", "b", "b/x", "b/x/1", "b/x/2", "c"
    ]  # fmt: skip
    assert [entry.path for entry in entries(batches)] == [entry.path for entry in entries(await walk(tree, tmp_path))]


async def test_a_big_folder_comes_in_parts(tree: HelperTree, tmp_path: Path) -> None:
    for number in range(20_000):
        os.close(os.open(tmp_path / f"{number:05}", os.O_CREAT | os.O_WRONLY))
    batches = await walk(tree, tmp_path)
    assert max(len(batch.items) for batch in batches) <= 1001
    assert len({entry.path for entry in entries(batches)}) == len(entries(batches)) == 20_000


async def test_a_path_longer_than_the_kernel_takes_is_walked(
    tree: HelperTree, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(lambda: subprocess.run(["rm", "-rf", tmp_path], check=True))  # too long for pathlib
    above = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=above)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=above)
        os.close(above)
        above = below
    os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=above))
    os.close(above)
    batches = await walk(tree, tmp_path)
    (entry,) = entries(batches)
    assert entry.path == os.fsencode(tmp_path) + b"/" + b"/".join([b"d" * 250] * 20) + b"/f"
    assert troubles(batches) == []
    assert (await tree.stat([entry.path]))[0][:2] == (entry.path, errno.ENAMETOOLONG)


async def test_another_file_system_is_not_entered(tree: HelperTree) -> None:
    dev, proc = os.lstat("/dev").st_dev, os.lstat("/proc").st_dev
    assert dev != proc, "two file systems that every Linux has"
    place = Place(b"/proc", True, False, dev, "", b"/", "")
    batches = [batch async for batch in tree.walk(place, ALL)]
    assert batches == [Batch(b"/proc", skipped=1)]


async def test_patterns_prune_and_choose(tree: HelperTree, tmp_path: Path) -> None:
    for name in ["keep/a.tar", "keep/b.txt", "cache/c.tar", "keep/cache/d.tar", "keep/\udcff.tar"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        sparse(tmp_path / name)
    got = await walk(tree, tmp_path, Filters(("*.tar",), ("cache",)))
    assert names(got, tmp_path) == {b"keep/a.tar", b"keep/\xff.tar"}
    assert names(await walk(tree, tmp_path, Filters((), ("keep/**",))), tmp_path) == {b"cache/c.tar"}
    some = [os.fsencode(tmp_path / "keep" / name) for name in ("a.tar", "b.txt")]
    assert [entry.path for entry in entries(await listed(tree, some, filters=Filters(("*.txt",))))] == some[1:]


@pytest.mark.parametrize("bad", ["[", "[z-a]"])
async def test_a_bad_pattern_is_a_value_error(tree: HelperTree, tmp_path: Path, bad: str) -> None:
    with pytest.raises(ValueError, match="is no pattern"):
        await walk(tree, tmp_path, Filters((bad,)))


async def test_a_root_that_is_no_folder_any_more_is_a_trouble(tree: HelperTree, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    place = await tree.resolve(os.fsencode(tmp_path / "d"))
    assert isinstance(place, Place)
    (tmp_path / "d").rmdir()
    (gone,) = [batch async for batch in tree.walk(place, ALL)]
    assert [trouble[:2] for trouble in gone.troubles] == [(place.path, errno.ENOENT)]
    sparse(tmp_path / "d")
    (file,) = [batch async for batch in tree.walk(place, ALL)]
    assert [trouble[:2] for trouble in file.troubles] == [(place.path, errno.ENOTDIR)]


async def test_a_folder_swapped_for_a_link_in_mid_walk_is_not_entered(tree: HelperTree, tmp_path: Path) -> None:
    root, secret = tmp_path / "root", tmp_path / "secret"
    for folder in (root / "a", root / "b" / "c", secret / "c"):
        folder.mkdir(parents=True)
    for number in range(8000):  # more than is read ahead of the consumer
        os.close(os.open(root / f"{number}", os.O_CREAT | os.O_WRONLY))
    resident(secret / "c" / "f")
    place = await tree.resolve(os.fsencode(root))
    assert isinstance(place, Place)
    walking = tree.walk(place, ALL, whole=True)
    batches = [await anext(walking)]
    (root / "b").rename(root / "moved")
    (root / "b").symlink_to(secret)
    (root / "a").rmdir()
    batches += [batch async for batch in walking]
    assert not any(b"secret" in entry.path or entry.path.endswith(b"/f") for entry in entries(batches))
    assert {trouble[:2] for trouble in troubles(batches)} <= {
        (os.fsencode(root / "a"), errno.ENOENT), (os.fsencode(root / "b"), errno.ENOTDIR)
    }  # fmt: skip
    assert len(entries(batches)) == 8000


@pytest.mark.skipif(os.getuid() != 0, reason="only root can take another user's rights")
async def test_another_user_s_rights_apply() -> None:
    tree = HelperTree(rights=Rights(65534, 65534))
    with tempfile.TemporaryDirectory(dir="/var/tmp") as top:
        root = Path(top)
        os.chmod(top, 0o755)  # noqa: PTH101, S103 - others must reach it; no call of pathlib in a coroutine
        for name in ("open", "closed", "unsearchable"):
            (root / name).mkdir()
            sparse(root / name / "f")
        (root / "closed").chmod(0o700)
        (root / "unsearchable").chmod(0o744)
        try:
            batches = await walk(tree, root)
            assert names(batches, root) == {b"open/f"}
            assert {(trouble.path, trouble.errno) for trouble in troubles(batches)} == {
                (os.fsencode(root / "closed"), errno.EACCES),
                (os.fsencode(root / "unsearchable/f"), errno.EACCES),
            }
            inside = await tree.resolve(os.fsencode(root / "closed/f"))
            assert isinstance(inside, Trouble)
            assert inside.errno == errno.EACCES
        finally:
            await tree.close()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can take another user's rights")
async def test_with_another_user_s_rights_a_file_he_may_not_read_is_not_named() -> None:
    tree = HelperTree(rights=Rights(65534, 65534))
    with tempfile.TemporaryDirectory(dir="/var/tmp") as top:
        root = Path(top)
        os.chmod(top, 0o755)  # noqa: PTH101, S103 - others must reach it; no call of pathlib in a coroutine
        sparse(root / "his").chmod(0o644)
        sparse(root / "secret").chmod(0o600)
        secret = os.fsencode(root / "secret")
        try:
            walked = await walk(tree, root)
            looked_up = await listed(tree, [os.fsencode(root / "his"), secret])
            for batches in (walked, looked_up):
                assert [entry.path for entry in entries(batches)] == [os.fsencode(root / "his")]
                assert [(trouble.path, trouble.errno) for trouble in troubles(batches)] == [(secret, errno.EACCES)]
        finally:
            await tree.close()


async def test_a_list_keeps_its_order_and_one_batch_a_chunk(tree: HelperTree, tmp_path: Path) -> None:
    root = os.fsencode(tmp_path)
    for name in "cab":
        sparse(tmp_path / name)
    (tmp_path / "d").mkdir()
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "to-d").symlink_to("d")
    sparse(tmp_path / "d" / "x")
    chunks = [
        [root + b"/c", root + b"/gone", root + b"/a"], [], [root + b"/link", root + b"/d"], [root + b"/to-d/x"],
        [b"/nul\0byte", root + b"/a/below", root + b"/" + b"n" * 256], [root + b"/b"],
    ]  # fmt: skip
    batches = await listed(tree, *chunks)
    assert [[entry.path for entry in entries([batch])] for batch in batches] == [
        [root + b"/c", root + b"/a"], [], [], [root + b"/to-d/x"], [], [root + b"/b"]
    ]  # fmt: skip
    assert [[trouble.errno for trouble in batch.troubles] for batch in batches] == [
        [errno.ENOENT], [], [NOT_REGULAR, errno.EISDIR], [], [errno.EINVAL, errno.ENOTDIR, errno.ENAMETOOLONG], []
    ]  # fmt: skip
    assert not any(batch.skipped for batch in batches)


async def test_listed_links_and_pipes_are_named_with_what_to_do(tree: HelperTree, tmp_path: Path) -> None:
    root = os.fsencode(tmp_path)
    sparse(tmp_path / "f")
    (tmp_path / "link").symlink_to("f")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    chunk = [root + b"/" + name for name in (b"link", b"loop", b"pipe", b"loop/f", b"f")]
    (batch,) = await listed(tree, chunk)
    link, pipe = "a symlink, which is not followed: list what it leads to", "neither a file nor a folder: take it off"
    assert [(trouble.errno, trouble.text[: len(pipe)]) for trouble in batch.troubles] == [
        (NOT_REGULAR, link[: len(pipe)]), (NOT_REGULAR, link[: len(pipe)]), (NOT_REGULAR, pipe),
        (errno.ELOOP, os.strerror(errno.ELOOP)[: len(pipe)]),
    ]  # fmt: skip
    assert names([batch], tmp_path) == {b"f"}


async def test_listed_links_that_are_not_wanted_are_no_trouble(tree: HelperTree, tmp_path: Path) -> None:
    (tmp_path / "link.tmp").symlink_to("f")
    (batch,) = await listed(tree, [os.fsencode(tmp_path / "link.tmp")], filters=Filters(exclude=("*.tmp",)))
    assert batch == Batch(b"")


async def test_a_place_names_its_mount(tmp_path: Path) -> None:
    table = tmp_path / "mounts"
    table.write_bytes(b"/dev/x / ext4 rw 0 0\n1.2.3.4@tcp:/fsx " + os.fsencode(tmp_path) + b" lustre rw 0 0\n")
    (tmp_path / "d").mkdir()
    (tmp_path / "link").symlink_to("d")
    tree = HelperTree(str(table))
    try:
        place = await tree.resolve(os.fsencode(tmp_path / "link" / "." / ".." / "link"))
        assert place == Place(
            os.fsencode(tmp_path / "d"), True, False, os.lstat(table).st_dev,
            "lustre", os.fsencode(tmp_path), "1.2.3.4@tcp:/fsx",
        )  # fmt: skip
        root = await tree.resolve(b"//")
        assert isinstance(root, Place)
        assert (root.path, root.fstype) == (b"/", "ext4")
        (tmp_path / "loop").symlink_to("loop")
        for path, number in ((tmp_path / "gone", errno.ENOENT), (tmp_path / "loop" / "x", errno.ELOOP)):
            assert (await tree.resolve(os.fsencode(path)))[:2] == (os.fsencode(path), number)
        assert (await tree.resolve(b"/\0"))[:2] == (b"/\0", errno.EINVAL)
    finally:
        await tree.close()


async def test_stat_answers_each_path_in_its_place(tree: HelperTree, tmp_path: Path) -> None:
    paths = [os.fsencode(tmp_path / f"{number}") for number in range(1300)]
    for path in paths[::2]:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
    answers = await tree.stat(paths)
    assert [isinstance(answer, Trouble) for answer in answers] == [False, True] * 650
    assert [answer.ino for answer in answers[::2] if not isinstance(answer, Trouble)] == [
        os.lstat(path).st_ino for path in paths[::2]
    ]
    assert await tree.stat([]) == []


def test_a_helper_imports_nothing_slow() -> None:
    from fsxwarm.lustre.pool import PROGRAM  # noqa: PLC0415 - of this test alone

    code = f"import sys; exec(open({PROGRAM!r}).read(), {{'__name__': 'helper'}}); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True, capture_output=True, text=True)
    loaded = set(modules.stdout.split())
    assert not {"fsxwarm", "asyncio", "typing", "pathlib", "subprocess"} & loaded


file_kinds = st.sampled_from(["sparse", "resident", "empty", "link", "fifo"])
file_names = st.binary(min_size=1, max_size=6).filter(lambda name: not {0, 47} & {*name} and name not in {b".", b".."})
trees = st.recursive(file_kinds, lambda inner: st.dictionaries(file_names, inner, max_size=5), max_leaves=25)


def build(path: bytes, node: str | dict[bytes, object]) -> None:
    if isinstance(node, dict):
        os.mkdir(path)  # noqa: PTH102 - bytes
        for name, below in node.items():
            build(path + b"/" + name, below)  # type: ignore[arg-type]  # a recursive type, without a name for it
    elif node == "link":
        os.symlink(b"..", path)  # noqa: PTH211 - bytes
    elif node == "fifo":
        os.mkfifo(path)
    else:
        fd = os.open(path, os.O_CREAT | os.O_WRONLY)
        if node == "resident":
            os.write(fd, DATA)
            os.fsync(fd)
        elif node == "sparse":
            os.ftruncate(fd, 9000)
        os.close(fd)


def as_os_walk_has_it(root: bytes) -> tuple[list[bytes], int]:
    paths, skipped = [], 0
    for folder, below, files in os.walk(root):
        below.sort()
        skipped += sum(os.path.islink(folder + b"/" + name) for name in below)  # noqa: PTH114 - bytes
        for name in (entry.name for entry in os.scandir(folder)):
            if name in files:
                info = os.lstat(folder + b"/" + name)
                if stat.S_ISREG(info.st_mode):
                    paths.append(folder + b"/" + name)
                else:
                    skipped += 1
    return paths, skipped


@given(st.lists(st.dictionaries(file_names, trees, max_size=6), min_size=1, max_size=3))
@settings(max_examples=25, deadline=None)
def test_a_walk_is_what_os_walk_finds(roots: list[dict[bytes, object]]) -> None:
    import asyncio  # noqa: PLC0415 - of this test alone

    async def check() -> None:
        tree = HelperTree()
        try:
            for root in roots:
                with tempfile.TemporaryDirectory() as top:
                    path = os.fsencode(top) + b"/r"
                    build(path, root)
                    batches = await walk(tree, path)
                    expected, skipped = as_os_walk_has_it(path)
                    assert [entry.path for entry in entries(batches)] == expected
                    assert sum(batch.skipped for batch in batches) == skipped
                    assert troubles(batches) == []
                    lazy = await walk(tree, path, whole=False)
                    assert len(entries(lazy)) + counted(lazy).files == len(expected)
        finally:
            await tree.close()

    asyncio.run(check())
