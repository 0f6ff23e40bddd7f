"""Load the studio with several visitors on loopback; JSON lines with their rates, errors and the server's memory.

Usage: python benchmarks/studio_load.py [--visitors 8] [--seconds 120] [--vehicle sim]

It starts `wordwing studio` as a process of its own. Each visitor opens a page, places a random layout and flies one
sentence after another as fast as the server lets it (speed 8), and goes on in a new layout after every few flights.
Decisions lost or out of order, errors other than "busy", and closed connections are counted. The memory is the
server's resident set, its children's included: before anyone flies, half-way, at the end, and the most of all seconds.
"""

import asyncio
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import tyro
import websockets

FLIGHTS = 3
"""Flights in one layout."""

SENTENCES = ("go to the pumpkin", "turn left and fly to the boat", "pass the gorilla on its left", "go to the banana")


@dataclass
class Visitor:
    """A visitor who flies all the time."""

    number: int
    port: int
    vehicle: str
    policy: str
    decisions: int = 0
    flights: int = 0
    layouts: int = 0
    busy: int = 0
    errors: list[str] = field(default_factory=list)
    longest: float = 0.0
    """The longest time between two decisions of a flight, seconds."""

    async def visit(self, begin: float, end: float) -> None:
        """Open a page at once and fly from one time to another."""
        address = f"127.0.0.1:{self.port}"
        try:
            async with websockets.connect(f"ws://{address}/ws", origin=f"http://{address}", max_size=None) as page:  # type: ignore[arg-type]
                await self._say(page, type="speed", value=8)
                await self._place(page)
                await asyncio.sleep(begin - time.monotonic())
                while time.monotonic() < end:
                    if self.flights >= FLIGHTS * self.layouts:
                        await self._place(page)
                    await self._fly(page, end)
        except (OSError, websockets.WebSocketException) as error:
            self.errors.append(f"{type(error).__name__}: {error}")

    async def _place(self, page: Any) -> None:
        """Place a new random layout."""
        seed = self.number + 1000 * self.layouts
        await self._say(page, type="stage", text=SENTENCES[0], corpus="cage", seed=seed)
        placed = json.loads(await page.recv())
        start = {key: placed[key] for key in ("layout", "start", "seed")}
        await self._say(page, type="place", vehicle=self.vehicle, **start)
        await page.recv()
        self.layouts += 1

    async def _fly(self, page: Any, end: float) -> None:
        text = SENTENCES[(self.number + self.flights) % len(SENTENCES)]
        await self._say(page, type="fly", text=text, policies=[self.policy])
        expected, last = 0, None
        while time.monotonic() < end:
            message = await page.recv()
            if isinstance(message, bytes):
                header = json.loads(message[4 : 4 + struct.unpack_from("<I", message)[0]])
                if header["step"] != expected:
                    self.errors.append(f"decision {header['step']} came where {expected} was due")
                now = time.monotonic()
                self.longest = max(self.longest, now - last if last is not None else 0.0)
                expected, last = expected + 1, now
                self.decisions += 1
                continue
            answer = json.loads(message)
            if answer["type"] == "busy":
                self.busy += 1
                await asyncio.sleep(0.5)
                return
            if answer["type"] == "error":
                self.errors.append(answer["message"])
            if answer["type"] == "state" and answer["phase"] == "ended":
                self.flights += 1
                return

    async def _say(self, page: Any, **message: object) -> None:
        await page.send(json.dumps(message))


def memory(pid: int) -> float:
    """Memory of a process and its children, MiB."""
    pids = [pid]
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(entry.read_text().rpartition(")")[2].split()[1]) == pid:
                pids.append(int(entry.parent.name))
        except OSError:
            continue
    pages = sum(int(Path(f"/proc/{each}/statm").read_text().split()[1]) for each in pids)
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def load(visitors: list[Visitor], pid: int, seconds: float) -> dict[str, float]:
    """Run all visitors; memory before the first flight, in the middle, at the end, and its maximum."""
    begin = time.monotonic() + 2.0 + 1.0 * len(visitors)  # all pages are placed by then
    visits = asyncio.gather(*(visitor.visit(begin, begin + seconds) for visitor in visitors))
    found = []
    for second in range(int(seconds)):
        await asyncio.sleep(begin + second - time.monotonic())
        found.append(memory(pid))
    await visits
    return {"start": found[0], "middle": found[len(found) // 2], "end": found[-1], "most": max(found)}


def serve(port: int, policy: str, folder: str) -> subprocess.Popen[bytes]:
    """Start a studio in a process of its own and wait until it listens."""
    code = (
        "import sys; from pathlib import Path; from wordwing.commands.studio import studio; "
        "studio(port=int(sys.argv[1]), policies=(sys.argv[2],), keep=Path(sys.argv[3]))"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(port), policy, folder], stdout=subprocess.DEVNULL)
    for _try in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise SystemExit("the studio did not open")


def main(
    visitors: int = 8,
    seconds: float = 120.0,
    vehicle: Literal["sim", "lab"] = "sim",
    policy: str = "pvn2-sureal",
) -> None:
    """Measure."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        process = serve(port, policy, folder)
        try:
            everyone = [Visitor(number, port, vehicle, policy) for number in range(visitors)]
            found = asyncio.run(load(everyone, process.pid, seconds))
        finally:
            process.terminate()
            process.wait(30)
    for visitor in everyone:
        row: dict[str, object] = {"visitor": visitor.number, "vehicle": vehicle}
        row |= {"decisions/s": round(visitor.decisions / seconds, 2), "longest wait s": round(visitor.longest, 2)}
        row |= {"flights": visitor.flights, "layouts": visitor.layouts}
        row |= {"busy": visitor.busy, "errors": visitor.errors[:5]}
        print(json.dumps(row))
    total: dict[str, object] = {"visitors": visitors, "vehicle": vehicle, "seconds": seconds, "cores": os.cpu_count()}
    total["decisions/s"] = round(sum(visitor.decisions for visitor in everyone) / seconds, 2)
    total["least decisions/s"] = round(min(visitor.decisions for visitor in everyone) / seconds, 2)
    total["errors"] = sum(len(visitor.errors) for visitor in everyone)
    for when, much in found.items():
        total[f"memory MiB, {when}"] = round(much)
    print(json.dumps(total))


if __name__ == "__main__":
    tyro.cli(main)
