"""`fsxwarm release` as a user runs it."""

from __future__ import annotations

import errno
import os
import pty
import subprocess
import sys

import pytest

from cli.machine import Site


def test_what_s3_holds_is_released_and_the_rest_left_alone(site: Site) -> None:
    first, dirty, pinned, *rest = site.files
    site.restore(*site.files)
    site.lfs("hsm_set", "--dirty", dirty)
    site.lfs("hsm_set", "--norelease", pinned)
    (site.data / "new").write_bytes(b"never archived" * 1000)
    done = site.fsxwarm("release", site.data, "--yes", "--json")
    document = done.json
    assert done.status == document["exit"] == 0
    assert document["released"]["files"] == 1 + len(rest)
    assert {reason: left["first"][0]["path"] for reason, left in document["left"].items()} == {
        "dirty": str(dirty),
        "pinned": str(pinned),
        "never_archived": str(site.data / "new"),
    }
    assert site.released(first)
    assert not site.released(dirty)


def test_without_a_terminal_it_acts_only_when_told(site: Site) -> None:
    site.restore(*site.files)
    done = site.fsxwarm("release", site.data)
    assert done.status == 2
    assert "--yes" in done.err
    assert site.fsxwarm("status", site.data, "--check").status == 0


def test_a_dry_run_changes_nothing(site: Site) -> None:
    site.restore(*site.files)
    done = site.fsxwarm("release", site.data, "--dry-run")
    assert done.status == 0
    assert "would be released" in done.out
    assert site.fsxwarm("status", site.data, "--check").status == 0


def test_on_a_terminal_it_asks(site: Site) -> None:
    site.restore(*site.files)
    assert _answer(site, b"n\n") == 0
    assert site.fsxwarm("status", site.data, "--check").status == 0
    assert _answer(site, b"y\n") == 0
    assert site.fsxwarm("status", site.data, "--json").json["resident"]["files"] == 0


def _answer(site: Site, answer: bytes) -> int:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "fsxwarm", "release", site.data],
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=site.fsx.environ(os.environ),
    ) as child:
        os.close(theirs)
        assert child.stderr is not None
        asked = b""
        while b"[y/N]" not in asked:
            piece = child.stderr.read1(100)
            assert piece, asked
            asked += piece
        os.write(ours, answer)
        child.stderr.read()
        status = child.wait(timeout=60)
    os.close(ours)
    return status


@pytest.mark.parametrize(("call", "backend"), [("state", "lfs"), ("state", "native"), ("release", "lfs")])
def test_a_release_that_can_do_nothing_is_incomplete_and_says_why(site: Site, call: str, backend: str) -> None:
    site.restore(*site.files)
    site.fsx.control("break", fault="eio", call=call, times=10_000)
    done = site.fsxwarm("release", site.data, "--yes", "--json", "--backend", backend)
    document = done.json
    assert done.status == document["exit"] == 3, done.err
    assert document["troubles"]["count"] == len(site.files)
    assert {one["errno"] for one in document["troubles"]["first"]} == {errno.EIO}
    assert document["left"] == {}
    said = site.fsxwarm("release", site.data, "--yes", "--backend", backend)
    assert said.status == 3
    assert os.strerror(errno.EIO) in said.out


def test_recent_files_are_kept(site: Site) -> None:
    site.restore(*site.files)
    document = site.fsxwarm("release", site.data, "--yes", "--older-than", "1h", "--json").json
    assert (document["released"]["files"], document["recent"]["files"]) == (0, len(site.files))


def test_room_that_is_there_already_needs_nothing(site: Site) -> None:
    site.restore(*site.files)
    done = site.fsxwarm("release", site.data, "--yes", "--until-free", "1GB", "--json")
    assert done.status == 0
    assert done.json["released"]["files"] == 0
    assert done.json["room"]["reached"]


def test_room_that_cannot_be_made_is_status_6(site: Site) -> None:
    site.restore(*site.files)
    done = site.fsxwarm("release", site.data, "--yes", "--until-free", "100%")
    assert done.status in {0, 6}, "an empty file system may be free to the last byte"
    assert site.fsxwarm("status", site.data, "--json").json["resident"]["files"] == 0
