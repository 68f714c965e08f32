"""A store and a hub of their own for each test."""

import io

import pytest

from mote.cli import main
from tests.mote.fake_hub import FakeHub, start


@pytest.fixture
def store_home(tmp_path, monkeypatch):
    """The folder of the store."""
    monkeypatch.setenv("MOTE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def hub(store_home, tmp_path, monkeypatch) -> FakeHub:
    """An empty hub, which the store asks."""
    hub, server = start()
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.setattr("mote.store.download.sleep", lambda seconds: None)
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)  # its servers have another protocol
    yield hub
    server.shutdown()
    server.server_close()


@pytest.fixture
def content(demo_files) -> bytes:
    """A file that works here."""
    return demo_files.path().read_bytes()


class Result:
    """What `mote` said: out, err (one line of words) and its exit status."""

    def __init__(self, status: int, out: str, err: str):
        self.status, self.out, self.err = status, out, " ".join(err.split())


@pytest.fixture
def mote(capsys, monkeypatch):
    """Runs the command in this process, with nobody at the terminal unless `answer` is given."""

    def run(*arguments: object, answer: str | None = None) -> Result:
        stdin = io.StringIO(answer or "")
        monkeypatch.setattr("sys.stdin", stdin)
        if answer is not None:
            stdin.isatty = lambda: True
            monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return Result(caught.value.code or 0, said.out, said.err)

    return run
