"""The executable `lfs` of a simulated FSx: sends its call to the server beside it and prints the answer.

The server puts a copy of this file at `<sim>/bin/lfs`, run with `python -I -S`; it may use nothing but the
interpreter's own modules. A call that blocks in the simulated kernel waits here; killing it leaves the request queued,
as on Lustre. FSXWARM_SIM_UID lets the server's owner call as somebody else.
"""

from __future__ import annotations

import _socket
import os
import sys


def _receive(sock: _socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part:
            sys.stderr.write("lfs: the simulated FSx went away\n")
            sys.exit(108)
        data += part
    return data


def _number(sock: _socket.socket) -> int:
    return int.from_bytes(_receive(sock, 4), "big")


def _ask(sock: _socket.socket, parts: list[bytes]) -> list[bytes]:
    data = len(parts).to_bytes(4, "big") + b"".join([len(part).to_bytes(4, "big") + part for part in parts])
    sock.sendall(data)
    return [_receive(sock, _number(sock)) for _ in range(_number(sock))]


def _content(path: bytes) -> list[bytes]:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - pathlib costs more than the whole call
            return [b"content", b"0", file.readall()]
    except OSError as error:
        return [b"content", b"%d" % (error.errno or 5), b""]


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def main() -> None:
    """Send the call, hand over the file list if asked, print and exit as told."""
    folder = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120 - pathlib costs too much
    # By the folder's descriptor: a socket's path may have 107 bytes, a folder's many more.
    where = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        sock.connect(f"/proc/self/fd/{where}/sim.sock")
    except OSError as error:
        sys.stderr.write(f"lfs: the simulated FSx in {folder} does not run: {error.strerror}\n")
        sys.exit(error.errno)
    try:
        here = os.getcwdb()  # noqa: PTH109 - pathlib costs too much
    except FileNotFoundError:
        here = b""  # it was removed: absolute paths still work
    uid = os.environ.get("FSXWARM_SIM_UID", "")
    argv = [b"lfs", *(os.fsencode(word) for word in sys.argv[1:])]
    answer = _ask(sock, [b"run", here, uid.encode(), *argv])
    if answer[0] == b"read":
        answer = _ask(sock, _content(answer[1]))
    _write(1, answer[2])
    _write(2, answer[3])
    os._exit(int(answer[1]))  # nothing is buffered; the interpreter's own ending costs milliseconds


if __name__ == "__main__":
    main()
