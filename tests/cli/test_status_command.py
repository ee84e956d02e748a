"""`fsxwarm status` as a user runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.machine import Site


def test_a_cold_tree_is_told_as_released(site: Site) -> None:
    done = site.fsxwarm("status", site.data, "--json")
    assert done.status == 0
    document = done.json
    assert document["schema"] == "fsxwarm.status/1"
    assert document["released"] == {"files": len(site.files), "bytes": 100_000 * len(site.files)}
    assert (document["resident"]["files"], document["coverage"]) == (0, 0.0)


def test_a_table_is_shown_to_people(site: Site) -> None:
    site.restore(site.files[0])
    done = site.fsxwarm("status", site.data, "--by-folder", "1", "--flags")
    assert done.status == 0
    assert "resident" in done.out
    assert f"{site.data}/part-000" in done.out
    assert "never archived" in done.out
    assert done.err == ""


def test_check_is_for_scripts(site: Site) -> None:
    assert site.fsxwarm("status", site.data, "--check").status == 3
    site.restore(*site.files)
    done = site.fsxwarm("status", site.data, "--check", "--json")
    assert (done.status, done.json["exit"], done.json["coverage"]) == (0, 0, 1.0)


def test_flags_and_folders_are_in_the_json(site: Site) -> None:
    site.restore(*site.files[:2])
    site.lfs("hsm_set", "--norelease", site.files[0])
    site.lfs("hsm_set", "--dirty", site.files[1])
    document = site.fsxwarm("status", site.data, "--flags", "--by-folder", "0", "--json").json
    assert {name: tally["files"] for name, tally in document["flags"].items()} == {
        "dirty": 1,
        "never_archived": 0,
        "pinned": 1,
        "lost": 0,
        "restoring": 0,
        "unread": 0,
    }
    (folder,) = document["folders"]
    assert folder["path"] == str(site.data)
    assert folder["resident"]["files"] == 2


def test_a_list_is_counted_and_its_mistakes_named(site: Site) -> None:
    names = [os.fsencode(site.files[0]), b"/fsx/none", b"/etc/passwd", os.fsencode(site.files[0])]
    done = site.fsxwarm("status", "--files-from", "-", "-0", "--json", "--check", stdin=b"\0".join(names))
    document = done.json
    assert done.status == 3
    assert document["released"]["files"] == 1
    assert document["missing"] == {"count": 1, "first": [{"path": "/fsx/none"}]}
    assert document["outside"]["count"] == 1


def test_what_could_not_be_counted_is_told_by_the_exit_status(site: Site) -> None:
    site.restore(site.files[0])
    assert site.fsxwarm("status", "--files-from", "-", stdin=os.fsencode(site.files[1])).status == 0
    done = site.fsxwarm("status", "--files-from", "-", "--json", stdin=os.fsencode(site.files[0]) + b"\n/fsx/none")
    assert (done.status, done.json["exit"]) == (3, 3)


@pytest.mark.parametrize("command", [["preload"], ["wait"], ["status"], ["release", "--yes"], ["pin"], ["plan"]])
def test_a_listed_link_is_named_and_not_followed(site: Site, command: list[str]) -> None:
    link = site.data / "link"
    link.symlink_to(site.files[0])
    done = site.fsxwarm(*command, "--files-from", "-", stdin=os.fsencode(link))
    assert done.status == 3
    said = " ".join((done.out + done.err).split())
    assert f"{link}: a symlink, which is not followed: list what it leads to" in said
    assert site.lfs("hsm_state", site.files[0]).endswith("released exists archived, archive_id:1\n")


def test_relative_paths_and_duplicates_count_once(site: Site) -> None:
    relative = os.path.relpath(site.data)
    document = site.fsxwarm("status", relative, site.data, site.files[0], "--json").json
    assert document["released"]["files"] == len(site.files)


def test_an_empty_folder_is_fine(site: Site) -> None:
    (site.data / "empty").mkdir()
    done = site.fsxwarm("status", site.data / "empty", "--check", "--json")
    assert (done.status, done.json["coverage"]) == (0, 1.0)


def test_any_name_is_shown_harmlessly(site: Site) -> None:
    folder = os.fsencode(site.data) + b"/\xff\n\x1b[31m: (0x0000000d) released"
    os.mkdir(folder)  # noqa: PTH102 - a name that is no text
    os.rename(site.files[0], folder + b"/-x")  # noqa: PTH104 - the same
    done = site.fsxwarm("status", site.data, "--by-folder", "1")
    assert "\\xff\\n\\x1b[31m: (0x0000000d) released" in done.out
    document = site.fsxwarm("status", folder, "--by-folder", "0", "--json").json
    assert document["folders"][0]["path_b64"]
    assert document["released"]["files"] == 1


def test_patterns_choose(site: Site) -> None:
    name = site.files[0].name
    assert site.fsxwarm("status", site.data, "--include", name, "--json").json["released"]["files"] == 1
    document = site.fsxwarm("status", site.data, "--exclude", name, "--json").json
    assert document["released"]["files"] == len(site.files) - 1


def test_without_lfs_it_says_so(site: Site) -> None:
    done = site.fsxwarm("status", site.data, FSXWARM_BACKEND="lfs", FSXWARM_LFS="/nowhere/lfs")
    assert done.status == 5
    assert done.err.count("\n") == 1
    assert "lustre-client" in done.err


def test_a_path_elsewhere_is_refused(site: Site) -> None:
    done = site.fsxwarm("status", "/tmp")  # noqa: S108 - a folder that is certainly no Lustre
    assert done.status == 5
    assert "is not on FSx for Lustre" in done.err


def test_a_reader_that_leaves_is_not_complained_about(site: Site) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "fsxwarm", "status", site.data],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=site.fsx.environ(os.environ),
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait(timeout=60) == 1


def test_ctrl_c_ends_it_at_once_even_while_it_waits_for_a_list(site: Site) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "fsxwarm", "status", "--files-from", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=site.fsx.environ(os.environ),
    ) as child:
        assert child.stdin is not None
        assert child.stderr is not None
        child.stdin.write(os.fsencode(site.files[0]) + b"\n")
        child.stdin.flush()
        while not _handles_sigterm(child.pid):
            assert child.poll() is None
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=60) == 130
        assert child.stderr.read() == b"fsxwarm: interrupted (run again to resume)\n"


def _handles_sigterm(pid: int) -> bool:
    caught = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def test_long_names_are_shortened_for_people_and_whole_in_json(site: Site) -> None:
    names = [f"{site.data}/{number}/" + "x/" * 2500 + "end" for number in range(3)]
    listed = "\n".join(names).encode()
    done = site.fsxwarm("status", "--files-from", "-", stdin=listed)
    shown = [line for line in done.out.splitlines() if "end" in line]
    assert len("".join(shown)) < 1000
    assert f"  {site.data}/0/"[:100] in shown[0]
    assert "…" in shown[0]
    document = site.fsxwarm("status", "--files-from", "-", "--json", stdin=listed).json
    whole = [one["path"] for one in [*document["missing"]["first"], *document["troubles"]["first"]]]
    assert sorted(whole) == sorted(names)
