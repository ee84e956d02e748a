"""A million files whose objects are looked up in S3: requests, memory, and that each is found.

The listings come over HTTP from a bucket that makes its keys up, through the real adapter.
"""

from __future__ import annotations

import asyncio
import bisect
import os
import re
import resource
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

sys.path.insert(0, str(Path(__file__).parent.parent))

from aws.paper_cloud import PaperCloud
from bench.tables import table
from fsxwarm.aws.calls import Calls
from fsxwarm.aws.cloud import AwsCloud
from fsxwarm.engine.atlas import Atlas, Mounted
from fsxwarm.engine.preflight import Inspector, Preflight
from fsxwarm.model.entry import Entry
from fsxwarm.model.s3 import CheckS3
from fsxwarm.ports.cloud import Listed
from fsxwarm.ports.tree import Batch

KEYS = 1_000_000
PAGE = 1000
MOST_MEMORY = 300 * 10**6
_KEY = "p/{:07d}".format
_STAMP = "2026-01-01T00:00:00.000Z"


class _Bucket(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        after = parse_qs(urlsplit(self.path).query).get("start-after", [""])[0]
        start = bisect.bisect_right(range(KEYS), after, key=_KEY)
        end = min(start + PAGE, KEYS)
        rows = "".join(
            f"<Contents><Key>{_KEY(number)}</Key><LastModified>{_STAMP}</LastModified><ETag>&quot;0&quot;</ETag>"
            f"<Size>100</Size><StorageClass>STANDARD</StorageClass></Contents>"
            for number in range(start, end)
        )
        body = (
            f"<ListBucketResult><IsTruncated>{str(end < KEYS).lower()}</IsTruncated>{rows}</ListBucketResult>".encode()
        )
        self.send_response(200)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass


class _Account(PaperCloud):
    """File systems on paper, objects from the network."""

    def __init__(self) -> None:
        super().__init__()
        self._s3 = AwsCloud(Calls(print, region="us-east-1"))

    async def list_objects(self, bucket: str, prefix: str, after: str) -> Listed:
        return await self._s3.list_objects(bucket, prefix, after)


async def _walk() -> AsyncIterator[Batch]:
    for start in range(0, KEYS, PAGE):
        names = range(start, start + PAGE)
        yield Batch(b"/fsx", [Entry(b"/fsx/%07d" % n, 7, n, 100, 0, 2**31, 0, 0, 1, 0, 0o100644) for n in names])


async def _check() -> None:
    atlas = Atlas(_Account(), [Mounted(b"/fsx", "10.0.0.7@tcp:/abc")])
    preflight = Preflight(Inspector(atlas, CheckS3.AUTO, print))
    barred = 0
    async for batch in preflight.checked(_walk()):
        barred += len(batch.barred)
    found = preflight.found
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(found.checked.files, found.requests, barred, peak)


def main() -> bool:
    """Run it in a process of its own; returns whether all was kept."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Bucket)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environ = os.environ | {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_address[1]}",
        "AWS_ACCESS_KEY_ID": "bench",
        "AWS_SECRET_ACCESS_KEY": "bench",
    }
    began = time.monotonic()
    done = subprocess.run([sys.executable, __file__, "check"], env=environ, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - began
    server.shutdown()
    server.server_close()
    told = re.search(r"^(\d+) (\d+) (\d+) (\d+)$", done.stdout, re.MULTILINE)
    if told is None:
        print(done.stdout, done.stderr)
        return False
    checked, requests, barred, peak = map(int, told.groups())
    kept = checked == KEYS and not barred and requests <= KEYS // PAGE * 1.1 and peak < MOST_MEMORY
    rows = [[f"{checked:,}", f"{requests:,}", f"{peak / 1e6:.0f} MB", f"{seconds:.0f} s", "yes" if kept else "NO"]]
    table(
        f"S3 look-up of {KEYS:,} files (< {MOST_MEMORY / 1e6:.0f} MB)",
        ["files", "requests", "memory", "time", "kept"],
        rows,
    )
    return kept


if __name__ == "__main__":
    if sys.argv[1:] == ["check"]:
        asyncio.run(_check())
    else:
        sys.exit(0 if main() else 1)
