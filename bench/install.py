"""Install each peer in its own environment on first use, with the versions of peers.txt."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.common import OWN, ROOT, BenchError, notes

PINS = ROOT / "bench" / "peers.txt"


class NotInstalled(BenchError):
    """The peer cannot be installed here."""


@dataclass(frozen=True)
class Peer:
    """One line of peers.txt."""

    name: str
    platform: str
    packages: tuple[str, ...]

    @property
    def on_node(self) -> bool:
        return self.platform == "node"

    @property
    def folder(self) -> Path:
        pins = hashlib.sha256(" ".join((self.platform, *self.packages)).encode()).hexdigest()
        return cache_folder() / f"{self.name}-{pins[:10]}"


def catalogue() -> dict[str, Peer]:
    """All peers of peers.txt, in its order."""
    peers = {}
    for line in PINS.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, platform, *packages = line.split()
            peers[name] = Peer(name, platform, tuple(packages))
    return peers


def command(name: str) -> tuple[list[str], Path | None]:
    """How to start the driver of a peer, and its folder of Node modules if it has one."""
    if name == OWN:
        return [sys.executable, "-m", "bench.peers", name], None
    peer = catalogue()[name]
    ensure_installed(peer)
    if peer.on_node:
        driver = ROOT / "bench" / "peers" / "driver.mjs"
        return ["node", str(driver), name], peer.folder / "node_modules"
    return [str(peer.folder / "bin" / "python"), "-m", "bench.peers", name], None


def ensure_installed(peer: Peer) -> None:
    """Install the peer if necessary; an incomplete environment is created again."""
    complete = peer.folder / ".complete"
    if complete.exists():
        return
    notes.print(f"installing {peer.name}: {' '.join(peer.packages)}", markup=False)
    shutil.rmtree(peer.folder, ignore_errors=True)
    peer.folder.mkdir(parents=True)
    if peer.on_node:
        if shutil.which("npm") is None:
            raise NotInstalled("needs Node.js and npm")
        (peer.folder / "package.json").write_text('{"private": true}\n')
        run("npm", "install", "--no-audit", "--no-fund", *peer.packages, cwd=peer.folder)
    else:
        run(find_python(peer), "-m", "venv", str(peer.folder))
        run(str(peer.folder / "bin" / "python"), "-m", "pip", "install", "-q", *peer.packages)
    complete.touch()


def find_python(peer: Peer) -> str:
    """Return this interpreter if it is new enough, else one of the variable or the PATH."""
    floor = re.fullmatch(r"python(?:>=3\.(\d+))?", peer.platform)
    if floor is None:
        raise BenchError(f"peers.txt: {peer.name}: what is {peer.platform}?")
    minor = int(floor.group(1) or 0)
    if sys.version_info >= (3, minor):
        return sys.executable
    variable = f"TREADLE_BENCH_PYTHON_{peer.name.upper()}"
    named = [os.environ.get(variable, "")]
    for candidate in named + [f"python3.{version}" for version in range(minor, minor + 4)]:
        path = shutil.which(candidate) if candidate else None
        # A shim can be on the PATH without an interpreter behind it, so it is tried.
        if path and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0:
            return path
    raise NotInstalled(f"needs Python 3.{minor} or newer; name one in {variable}")


def run(*words: str, cwd: Path | None = None) -> None:
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "rror" in line]
        raise NotInstalled(lines[-1] if lines else f"{words[0]} exited with {done.returncode}")


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "treadle-bench"
