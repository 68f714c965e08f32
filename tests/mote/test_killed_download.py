"""Downloads that are killed at random points, from a server with faults: the result is right or refused.

`make test-downloads` takes 200 MB; `make test` a small file.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import random
import time

import pytest

from tests.mote.faulty_server import FaultyServer, enlarged

NUM_BYTES = int(os.environ.get("MOTE_DOWNLOAD_BYTES", "4000000"))
NUM_KILLS = int(os.environ.get("MOTE_DOWNLOAD_KILLS", "25"))


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
            process = processes.Process(target=download, args=(str(tmp_path), server.url, sha256))
            wants_kill = kills < NUM_KILLS
            until = server.sent_bytes + chance.randrange(len(files[0]))
            server.on_bytes = lambda sent: process.kill() if wants_kill and sent > until else None  # noqa: B023
            process.start()
            deadline = time.monotonic() + 300
            while process.is_alive() and time.monotonic() < deadline:
                process.join(0.02)
            assert process.exitcode in (0, 3, -9), process.exitcode
            kills += process.exitcode == -9
            refused += process.exitcode == 3
            if process.exitcode == 0:
                through += 1
                assert hashlib.sha256(path.read_bytes()).hexdigest() in expected
                assert not path.with_name("file.mote.part").exists()
                path.unlink()
            assert refused < 200
    print(f"{kills} killed, {through} right, {refused} refused")
    assert kills >= NUM_KILLS and through > 0
