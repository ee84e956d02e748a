"""A real headless Chromium, spoken to over its DevTools protocol."""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None and os.environ.get("CI") != "true", reason="needs chromium: apt-get install chromium"
)


class Tab:
    """One tab. `complaints` holds what went wrong in it: errors, refusals of the content policy, dialogs."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._loaded = asyncio.Event()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._reading = asyncio.create_task(self._read())

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        return await asyncio.wait_for(answer, 30)

    async def _read(self) -> None:
        async for message in self._socket:
            heard = message.json()
            if "id" in heard:
                answer = self._answers.pop(heard["id"])
                if "error" in heard:
                    answer.set_exception(RuntimeError(str(heard["error"])))
                else:
                    answer.set_result(heard["result"])
            else:
                self._hear(heard["method"], heard["params"])

    def _hear(self, method: str, said: dict[str, Any]) -> None:
        match method:
            case "Page.loadEventFired":
                self._loaded.set()
            case "Page.javascriptDialogOpening":
                self.complaints.append(f"dialog: {said['message']}")
            case "Runtime.exceptionThrown":
                self.complaints.append(str(said["exceptionDetails"]))
            case "Log.entryAdded" if said["entry"]["level"] in {"error", "warning"}:
                self.complaints.append(str(said["entry"]["text"]))
            case "Network.requestWillBeSent":
                self.requests.append(said["request"]["url"])

    async def open(self, address: str) -> None:
        """Go to an address and wait until it is there."""
        self._loaded.clear()
        await self.call("Page.navigate", url=address)
        await asyncio.wait_for(self._loaded.wait(), 30)

    async def ask(self, expression: str) -> Any:
        """The value of an expression, as the page's own scripts would see it; promises are waited for."""
        answer = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def until(self, expression: str) -> None:
        """Wait until an expression is true."""
        async with asyncio.timeout(30):
            while not await self.ask(expression):  # noqa: ASYNC110 - what happens in the browser sets no event here
                await asyncio.sleep(0.1)

    async def text(self) -> str:
        text: str = await self.ask("document.body.innerText")
        return text

    async def press(self, key: str, code: int) -> None:
        for kind in ("keyDown", "keyUp"):
            more = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more)

    async def look(self, target: Path, *, width: int, height: int = 900, dark: bool = False) -> None:
        """Take a picture of the whole page at a width."""
        await self.resize(width, height, dark=dark)
        whole = await self.ask("document.documentElement.scrollHeight")
        await self.resize(width, min(int(whole), 6000), dark=dark)
        picture = await self.call("Page.captureScreenshot", format="png")
        await asyncio.to_thread(target.write_bytes, base64.b64decode(picture["data"]))

    async def resize(self, width: int, height: int, *, dark: bool = False) -> None:
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])

    async def close(self) -> None:
        await self._socket.close()
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)


@asynccontextmanager
async def chromium() -> AsyncIterator[Tab]:
    """A browser with one tab, that remembers nothing."""
    assert CHROMIUM is not None, "CI must have chromium"
    folder = Path(tempfile.mkdtemp(prefix="fsxwarm-chromium-"))
    process = await asyncio.create_subprocess_exec(
        CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-default-apps",
        "--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank",
        stderr=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        port = await _port(folder / "DevToolsActivePort")
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                address = next(one for one in await answer.json() if one["type"] == "page")["webSocketDebuggerUrl"]
            async with session.ws_connect(address, max_msg_size=1 << 26) as socket:
                tab = Tab(socket)
                for domain in ("Page", "Runtime", "Log", "Network"):
                    await tab.call(f"{domain}.enable")
                yield tab
                await tab.close()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 15)
        await process.wait()
        shutil.rmtree(folder, ignore_errors=True)


async def _port(file: Path) -> int:
    def read() -> list[str]:
        return file.read_text().split() if file.exists() else []

    async with asyncio.timeout(60):
        while not (words := read()):  # noqa: ASYNC110 - the same
            await asyncio.sleep(0.1)
    return int(words[0])
