"""What every implementation of the Tree port does, on a simulated and on a real Lustre alike."""

import errno
import stat
from collections.abc import AsyncIterator, Sequence

from conformance.lab import SIZE, Lab
from fsxwarm.model.entry import Entry, Resident, Trouble
from fsxwarm.model.shard import Shard
from fsxwarm.ports.tree import NOT_REGULAR, Batch, Filters, Place

ALL = Filters()


async def place(lab: Lab, path: bytes) -> Place:
    found = await lab.tree.resolve(path)
    assert isinstance(found, Place), found
    return found


async def walk(lab: Lab, filters: Filters = ALL, *, whole: bool = False) -> list[Batch]:
    root = await place(lab, lab.folder)
    return [batch async for batch in lab.tree.walk(root, filters, whole=whole)]


async def listed(lab: Lab, *lists: Sequence[bytes], filters: Filters = ALL, whole: bool = False) -> list[Batch]:
    async def paths() -> AsyncIterator[Sequence[bytes]]:
        for one in lists:
            yield one

    return [batch async for batch in lab.tree.listed(paths(), filters, whole=whole)]


def entries(batches: list[Batch]) -> list[Entry]:
    return [item for batch in batches for item in batch.items if isinstance(item, Entry)]


def residents(batches: list[Batch]) -> Resident:
    runs = [item for batch in batches for item in batch.items if isinstance(item, Resident)]
    return Resident(sum(run.files for run in runs), sum(run.bytes for run in runs))


async def until_proven(lab: Lab, paths: list[bytes]) -> None:
    """Blocks of new data show up once it has reached the OSTs."""

    async def proven() -> bool:
        return all(not isinstance(found, Trouble) and found.blocks > 1 for found in await lab.tree.stat(paths))

    await lab.until(proven)


async def test_a_place_is_where_a_path_leads(lab: Lab) -> None:
    (path,) = await lab.plain(b"a")
    folder = await lab.mkdir(b"folder")
    link = await lab.symlink(folder, b"link")
    found = await place(lab, lab.folder)
    assert (found.path, found.is_dir, found.is_file) == (lab.folder, True, False)
    assert (found.mount, found.fstype) == (lab.mount, "lustre")
    assert (await place(lab, path))[:3] == (path, False, True)
    assert (await place(lab, link))[:3] == (folder, True, False)
    assert (await place(lab, path)).dev == found.dev


async def test_a_missing_path_is_a_trouble(lab: Lab) -> None:
    for path in (lab.path(b"gone"), lab.path(b"gone/below")):
        assert (await lab.tree.resolve(path))[:2] == (path, errno.ENOENT)


async def test_a_walk_names_the_released_and_counts_the_resident(lab: Lab) -> None:
    cold, warm = await lab.released(b"r1", b"r2"), await lab.plain(b"p1", b"p2", b"p3")
    await until_proven(lab, warm)
    batches = await walk(lab)
    assert {entry.path for entry in entries(batches)} == set(cold)
    assert residents(batches) == Resident(3, 3 * SIZE)
    assert all(entry.size == SIZE and entry.blocks <= 1 and not entry.proves_resident for entry in entries(batches))
    assert all(stat.S_ISREG(entry.mode) and entry.nlink == 1 for entry in entries(batches))
    assert not any(batch.troubles or batch.skipped for batch in batches)
    assert {batch.folder for batch in batches} == {lab.folder}


async def test_a_whole_walk_names_all(lab: Lab) -> None:
    paths = [*await lab.released(b"r"), *await lab.plain(b"p")]
    batches = await walk(lab, whole=True)
    assert {entry.path for entry in entries(batches)} == set(paths)
    assert residents(batches) == Resident(0, 0)


async def test_a_walk_follows_no_link_and_skips_what_is_no_file(lab: Lab) -> None:
    (path,) = await lab.released(b"a")
    await lab.symlink(path, b"to-file")
    await lab.symlink(lab.folder, b"to-folder")
    await lab.symlink(lab.path(b"gone"), b"to-nothing")
    batches = await walk(lab)
    assert [entry.path for entry in entries(batches)] == [path]
    assert sum(batch.skipped for batch in batches) == 3


async def test_all_names_of_a_file_have_one_key(lab: Lab) -> None:
    (path,) = await lab.plain(b"a")
    link = await lab.link(path, b"b")
    await until_proven(lab, [path])
    found = entries(await walk(lab))
    assert {entry.path for entry in found} == {path, link}, "a file with several names is never only counted"
    assert len({entry.key for entry in found}) == 1
    assert {entry.nlink for entry in found} == {2}


async def test_folders_come_depth_first_in_order(lab: Lab) -> None:
    names = [b"b", b"a", b"a/z", b"a/y", b"c", b"b/x"]
    for name in names:
        await lab.mkdir(name)
    await lab.plain(*(name + b"/f" for name in names), b"f")
    batches = await walk(lab, whole=True)
    folders = list(dict.fromkeys(batch.folder for batch in batches if batch.items))
    assert folders == [lab.folder, *(lab.path(name) for name in (b"a", b"a/y", b"a/z", b"b", b"b/x", b"c"))]
    assert [entry.path for entry in entries(batches)] == [folder + b"/f" for folder in folders]


async def test_a_walk_of_an_empty_folder_is_empty(lab: Lab) -> None:
    batches = await walk(lab)
    assert not any(batch.items or batch.troubles or batch.skipped for batch in batches)


async def test_patterns_choose_names(lab: Lab) -> None:
    await lab.mkdir(b"sub")
    paths = await lab.plain(b"a.tar", b"b.txt", b"sub/c.tar", b"sub/d.txt")
    tars = entries(await walk(lab, Filters(include=("**/*.tar",)), whole=True))
    assert {entry.path for entry in tars} == {paths[0], paths[2]}
    rest = entries(await walk(lab, Filters(exclude=("sub/**",)), whole=True))
    assert {entry.path for entry in rest} == {paths[0], paths[1]}


async def test_odd_names_pass_unchanged(lab: Lab) -> None:
    names = [b"new\nline", b"bad\xff\xfe", b"-dash", b" ", b"*", b"n" * 255]
    paths = await lab.plain(*names)
    assert {entry.path for entry in entries(await walk(lab, whole=True))} == set(paths)
    assert [entry.path for entry in entries(await listed(lab, paths, whole=True))] == paths


async def test_a_list_keeps_its_order_and_names_what_is_wrong(lab: Lab) -> None:
    first, second, third = await lab.released(b"z", b"a", b"m")
    folder, gone = await lab.mkdir(b"folder"), lab.path(b"gone")
    link = await lab.symlink(first, b"link")
    batches = await listed(lab, [first, gone, second], [link, folder], [third])
    assert [[item.path for item in batch.items if isinstance(item, Entry)] for batch in batches] == [
        [first, second], [], [third]
    ]  # fmt: skip
    assert [[trouble[:2] for trouble in batch.troubles] for batch in batches] == [
        [(gone, errno.ENOENT)], [(link, NOT_REGULAR), (folder, errno.EISDIR)], []
    ]  # fmt: skip
    assert not any(batch.skipped for batch in batches)


async def test_stat_tells_released_from_restored(lab: Lab) -> None:
    (path,) = await lab.released(b"a")
    (before,) = await lab.tree.stat([path])
    assert not isinstance(before, Trouble)
    assert (before.size, before.blocks <= 1) == (SIZE, True)
    assert (await lab.hsm.restore([path])).errno == 0
    await lab.until_resident([path])
    await until_proven(lab, [path])
    (after,) = await lab.tree.stat([path])
    assert not isinstance(after, Trouble)
    assert (after.dev, after.ino, after.size) == (before.dev, before.ino, SIZE)


async def test_stat_answers_for_each_path_and_follows_no_link(lab: Lab) -> None:
    first, last = await lab.plain(b"first", b"last")
    gone, link = lab.path(b"gone"), await lab.symlink(first, b"link")
    answers = await lab.tree.stat([first, gone, link, last])
    assert not any(isinstance(answers[place], Trouble) for place in (0, 2, 3))
    assert answers[1][:2] == (gone, errno.ENOENT)
    assert [answer.size for answer in answers if not isinstance(answer, Trouble)] == [SIZE, len(first), SIZE]
    assert await lab.tree.stat([]) == []


async def test_stat_and_walk_agree_on_identity(lab: Lab) -> None:
    (path,) = await lab.released(b"a")
    (found,), (entry,) = await lab.tree.stat([path]), entries(await walk(lab))
    assert not isinstance(found, Trouble)
    assert entry.key == (found.dev, found.ino)


async def test_no_helper_was_abandoned(lab: Lab) -> None:
    await walk(lab)
    assert lab.tree.abandoned == 0


async def test_shards_share_all_files_out(lab: Lab) -> None:
    """Released, resident and hard-linked ones, by folder and by list; what is no file counts once as well."""
    await lab.mkdir(b"sub")
    cold = await lab.released(*(b"sub/r%d" % number for number in range(5)), *(b"r%d" % number for number in range(5)))
    warm = await lab.plain(*(b"p%d" % number for number in range(8)))
    await until_proven(lab, warm)
    await lab.symlink(cold[0], b"link")
    everything = await walk(lab)
    paths = [*cold, *warm, lab.path(b"gone")]
    for count in (1, 2, 3, 7):
        shards = [Filters(shard=Shard(index, count)) for index in range(1, count + 1)]
        walks = [await walk(lab, shard) for shard in shards]
        assert sorted(e.path for one in walks for e in entries(one)) == sorted(e.path for e in entries(everything))
        assert sum(residents(one).files for one in walks) == residents(everything).files == len(warm)
        assert sum(batch.skipped for one in walks for batch in one) == 1
        lists = [await listed(lab, paths, filters=shard, whole=True) for shard in shards]
        assert sorted(e.path for one in lists for e in entries(one)) == sorted(paths[:-1])
        for walked, one in zip(walks, lists, strict=True):
            assert {e.path for e in entries(walked)} == {e.path for e in entries(one)} & set(cold)  # by inode number
            assert [trouble.path for batch in one for trouble in batch.troubles] == [lab.path(b"gone")]


async def test_a_hard_linked_file_is_in_one_shard_under_all_its_names(lab: Lab) -> None:
    await lab.mkdir(b"sub")
    (path,) = await lab.released(b"first")
    await lab.link(path, b"sub/second")
    found = [entries(await walk(lab, Filters(shard=Shard(index, 5)))) for index in range(1, 6)]
    assert sorted(map(len, found)) == [0, 0, 0, 0, 2]
