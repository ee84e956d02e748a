"""What a true lfs prints, for any truth and the most deceiving names: strategies for hypothesis."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

from fsxwarm.lustre.replies import Output
from fsxwarm.model.hsm import WEDGED_MOVED, Action, Flags, Verb

WORDS = (
    (4, b"released"), (1, b"exists"), (2, b"dirty"), (8, b"archived"),
    (16, b"never_release"), (32, b"never_archive"), (64, b"lost_from_hsm"),
)  # fmt: skip

pieces = st.sampled_from(
    [
        b"a", b"b", b"/l/a", b"/l/b", b"\n", b": ", b": (0x0000000d) released exists archived, archive_id:1",
        b": (0x0000000d)", b"\n/l/a: (0x00000009)", b": NOOP", b": NOOP\n", b": RESTORE waiting (from 0 to EOF)",
        b"\xff", b"'", b" ", b"\r", b": No such file or directory", b"can't get hsm state for ",
        b"can't get hsm action for ",
    ]
)  # fmt: skip
names = st.lists(pieces | st.binary(min_size=1, max_size=6).map(lambda b: b.replace(b"\0", b"\n")), max_size=5)
absolute_paths = names.map(lambda parts: b"/l/" + (b"".join(parts) or b"a"))
errnos = st.sampled_from([errno.ENOENT, errno.EACCES, errno.EIO, errno.ENOTTY])


def state_line(path: bytes, flags: int) -> bytes:
    words = b"".join(b" " + word for bit, word in WORDS if flags & bit)
    archive = b", archive_id:1" if flags & 1 else b""
    return b"%s: (0x%08x)%s%s\n" % (path, flags, words, archive)


def action_line(path: bytes, action: Action) -> bytes:
    if action.idle:
        return path + b": NOOP\n"
    state = b"running (%d bytes moved)" % action.moved if action.running else b"waiting (from 0 to EOF)"
    return b"%s: %s %s\n" % (path, action.verb.value.encode(), state)


states = st.integers(0, 127).map(Flags)
actions = st.builds(
    lambda verb, running, moved: Action(verb, running, moved if running else 0) if verb is not Verb.NONE else Action(),
    st.sampled_from(Verb),
    st.booleans(),
    st.integers(0, WEDGED_MOVED),
)


def said(world: Mapping[bytes, object], line: Callable[[bytes, Any], bytes], word: bytes, *, goes_on: bool) -> Output:
    """What lfs prints for this truth: up to 2.15 (stops at the first bad file), or from 2.16 on."""
    stdout, stderr, status = b"", b"", 0
    for path, truth in world.items():
        if not isinstance(truth, int) or isinstance(truth, Flags):
            stdout += line(path, truth)
            continue
        quote = b"'" if goes_on and len(path) % 2 else b""  # 2.16 has words of its own, and why not the old ones
        status = status or truth
        stderr += b"can't get hsm %s for %s%s%s: %s\n" % (word, quote, path, quote, os.strerror(truth).encode())
        if not goes_on:
            break
    return Output(status, stdout, stderr)
