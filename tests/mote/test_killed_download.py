"""Downloads that are killed at random points, from a server with faults: the result is right or refused.

`make test-downloads` takes 200 MB; `make test` a small file. MOTE_DOWNLOAD_CLIENT is a program in the place of Python's
client, which is given an URL, the store's folder and perhaps a hash, and has the exit status 3 for a refusal.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import random
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.mote.faulty_server import FaultyServer, enlarged

NUM_BYTES = int(os.environ.get("MOTE_DOWNLOAD_BYTES", "4000000"))
NUM_KILLS = int(os.environ.get("MOTE_DOWNLOAD_KILLS", "25"))
CLIENT = shlex.split(os.environ.get("MOTE_DOWNLOAD_CLIENT", ""))
SECONDS = 300


def download(root: str, url: str, sha256: str) -> None:
    """What a process does that may be killed; its exit status is 3 for a refusal."""
    import mote.store.download as module
    from mote.store.catalog import Store

    module.sleep = lambda seconds: None
    from llm_runner.errors import MoteError

    try:
        with module.Download(Store(root), url, sha256=sha256) as running:
            for _ in running.run():
                pass
    except MoteError as error:
        print(f"refused: {error}")
        os._exit(3)


@pytest.fixture(scope="module")
def processes():
    """Starts processes fast: the one that forks them has imported what they need."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["tests.mote.test_killed_download", "mote.store.download", "huggingface_hub", "httpx", "llm_runner"]
    )
    return context


def start(processes, root: Path, url: str, sha256: str):
    if CLIENT:
        return subprocess.Popen([*CLIENT, url, str(root), *filter(None, [sha256])])
    process = processes.Process(target=download, args=(str(root), url, sha256))
    process.start()
    return process


def exit_status(process) -> int | None:
    if CLIENT:
        return process.wait(SECONDS)
    process.join(SECONDS)
    return process.exitcode


@pytest.fixture(scope="module")
def versions(demo_files):
    content = demo_files.path().read_bytes()
    return [enlarged(content, NUM_BYTES, seed) for seed in (1, 2)]


@pytest.mark.parametrize("has_hash", [True, False])
def test_downloads_killed_at_random_points(processes, versions, tmp_path, has_hash):
    chance = random.Random(7)
    files = versions[:1] if has_hash else versions
    sha256 = hashlib.sha256(versions[0]).hexdigest() if has_hash else ""
    expected = {hashlib.sha256(file).hexdigest() for file in files}
    path = tmp_path / "models" / "127.0.0.1" / "file" / "file.mote"
    kills = through = refused = 0
    with FaultyServer(files, seed=3) as server:
        while kills < NUM_KILLS or not through:
            wants_kill = kills < NUM_KILLS
            until = server.sent_bytes + chance.randrange(len(files[0]))
            process = start(processes, tmp_path, server.url, sha256)
            server.on_bytes = lambda sent: process.kill() if wants_kill and sent > until else None  # noqa: B023
            status = exit_status(process)
            assert status in (0, 3, -9), status
            kills += status == -9
            refused += status == 3
            if status == 0:
                through += 1
                assert hashlib.sha256(path.read_bytes()).hexdigest() in expected
                assert not path.with_name("file.mote.part").exists()
                path.unlink()
            assert refused < 200
    print(f"{kills} killed, {through} right, {refused} refused")
    assert kills >= NUM_KILLS and through > 0
