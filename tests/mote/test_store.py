"""`mote list`, `rm` and `show`, and the verbs that take a name in place of a file."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mote import ArgumentError, FileError, Model
from mote.arguments import runner_switches, with_model_paths
from mote.commands import runner_binary
from mote.store.catalog import Store
from mote.store.download import Download


@pytest.fixture
def add(store_home):
    """Puts a file into the store."""

    def add(model: str, file: str, content: bytes = b"x" * 1000, recipe: str = "8da4w group_size=32 embedding=8"):
        path = store_home / "models" / model / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        repo, _, revision = model.partition("@")
        made = {
            "repo": repo, "revision": revision, "commit": "c" * 40, "file": file, "source": "download",
            "sha256": "0" * 64, "bytes": len(content), "recipe": recipe, "model_type": "qwen3", "license": "mit",
            "pulled_at": "2026-01-02T03:04:05+00:00",
        }  # fmt: skip
        path.with_name(f"{file}.json").write_text(json.dumps(made))
        return path

    return add


def test_an_empty_store_says_how_to_fill_it(mote, store_home):
    assert "no models in" in mote("list").out and "mote pull org/name" in mote("list").out
    assert mote("list", "--json").out == "[]\n"


def test_list_fits_80_columns_and_never_cuts_a_name(add, mote, store_home):
    add("org/tiny", "tiny-8da4w.mote")
    add("org/two", "two-8w.mote", recipe="8w group_size=32 embedding=8")
    add("org/two", "two-4w.mote", recipe="4w group_size=32 embedding=8")
    long = "an-organisation-with-a-long-name/and-a-model-whose-name-is-longer-still-and-has-bits"
    add(long, "x.mote")
    (store_home / "models" / "org" / "tiny" / "stray.mote").write_bytes(b"y")
    lines = mote("list").out.splitlines()
    assert all(len(line) <= 80 for line in lines[:-1] if line != f"{long}")
    assert [line.split()[:2] for line in lines[:-1] if not line.startswith(("an-", " "))] == [
        ["name", "recipe"], ["org/tiny:stray", "?"], ["org/tiny:tiny-8da4w", "8da4w"], ["org/two:two-4w", "4w"],
        ["org/two:two-8w", "8w"],
    ]  # fmt: skip
    assert long in lines
    assert lines[-1] == f"4.0 kB in {store_home / 'models'}"


def test_list_as_json(add, mote):
    path = add("org/tiny@v1", "tiny.mote")
    (found,) = json.loads(mote("list", "--json").out)
    assert (found["name"], found["path"], found["bytes"]) == ("org/tiny@v1:tiny", str(path), 1000)
    assert found["complete"] and found["manifest"]["license"] == "mit"


def test_rm_asks_and_leaves_nothing(add, mote, store_home):
    add("org/two", "a-8w.mote")
    path = add("org/two", "b-4w.mote")
    other = add("org/other", "o.mote")
    part = path.with_name("c.mote.part")
    part.write_bytes(b"z" * 500)
    assert mote("rm", "org/two", answer="n\n").status == 130 and path.exists()
    assert "give --yes" in mote("rm", "org/two").err and path.exists()
    assert "Delete 1.0 kB?" in mote("rm", "org/two:8w", answer="y\n").err
    assert path.exists() and part.exists()
    assert mote("rm", "org/two", "-y").out == "freed 1.5 kB\n"
    assert not path.parent.exists() and other.exists()
    assert mote("rm", "org/other", "-y").status == 0
    assert list((store_home / "models").iterdir()) == []


def test_rm_of_what_is_not_there_names_the_closest(add, mote):
    add("org/tiny", "tiny.mote")
    result = mote("rm", "org/tinny", "-y")
    assert result.status == 2 and "no model 'org/tinny': did you mean 'org/tiny'?" in result.err


def test_rm_waits_for_no_pull(hub, add, mote, store_home):
    path = add("org/tiny", "tiny.mote")
    with Download(Store(store_home), "org/tiny") as download:
        with pytest.raises(FileError, match="the hub has no model"):
            list(download.run())
        assert "another process downloads it now" in mote("rm", "org/tiny", "-y").err
    assert path.exists()
    assert mote("rm", "org/tiny", "-y").status == 0


@pytest.mark.parametrize("damage", ["{", "[]", '{"repo": 1}'])
def test_a_damaged_manifest_does_not_stop_list(add, mote, damage):
    path = add("org/tiny", "tiny.mote")
    path.with_name("tiny.mote.json").write_text(damage)
    assert mote("list").out.splitlines()[1].split()[:2] == ["org/tiny", "?"]


def test_the_place_of_the_store(monkeypatch, tmp_path):
    monkeypatch.delenv("MOTE_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    caches = tmp_path / "Library" / "Caches" if sys.platform == "darwin" else tmp_path
    assert Store().models == caches / "mote" / "models"
    monkeypatch.setenv("MOTE_HOME", "~/m")
    assert Store().models == tmp_path / "m" / "models"


@pytest.fixture
def demo(add, demo_files):
    """The demo model as org/demo."""
    path = add("org/demo", "demo-8da4w.mote")
    shutil.copy(demo_files.path(), path)
    return path


def test_show_tells_what_a_model_is(demo, mote):
    lines = {line[:14].strip(): line[15:] for line in mote("show", "org/demo").out.splitlines()}
    assert lines["model"] == "demo (qwen3)" and lines["parameters"] == "4.6 M"
    assert lines["recipe"] == "8da4w group_size=32 embedding=8" and lines["context"] == "up to 2048 positions"
    assert lines["chat template"] == "yes" and lines["licence"] == "mit" and lines["path"] == str(demo)
    assert "of 48 positions" in lines["checked"] and lines["from"].startswith("download of org/demo cccc")
    found = json.loads(mote("show", demo, "--json").out)
    assert found["num_parameters"] == 4_591_648 and found["manifest"]["repo"] == "org/demo"
    assert found["check"]["mode"] == "full" and found["check"]["num_positions"] > 0


def test_show_pulls_nothing(demo, mote):
    result = mote("show", "org/dem")
    assert result.status == 2 and "did you mean 'org/demo'?" in result.err


def test_python_opens_what_the_store_has(demo, hub, monkeypatch, tmp_path):
    assert Model.load("org/demo").path == Model.load("org/demo:8da4w").path == str(demo)
    assert hub.requests == []
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org").mkdir()
    os.link(demo, tmp_path / "org" / "demo")
    assert Model.load("org/demo").path == "org/demo", "paths win"


def test_python_downloads_nothing_and_says_what_does(demo, add, hub):
    for name, said in {
        "org/dem": "did you mean 'org/demo'\\? else: mote pull org/dem$",
        "far/away:8w": "has no model 'far/away:8w': mote pull far/away:8w$",
        "org/demo:4w": "mote pull org/demo:4w$",
    }.items():
        with pytest.raises(FileError, match=said):
            Model.load(name)
    with pytest.raises(FileError, match="^org/demo.mote: cannot be opened"):
        Model.load("org/demo.mote")
    with pytest.raises(FileError, match="^org/dem: cannot be opened"):
        Model.load(Path("org/dem"))
    for file in ("two-8w.mote", "two-4w.mote"):
        add("org/two", file)
    with pytest.raises(ArgumentError, match="the store has several files: say which: org/two:two-4w, org/two:two-8w$"):
        Model.load("org/two")
    assert hub.requests == []


def test_verbs_take_names_without_a_network(demo, hub, mote, monkeypatch):
    seen = []
    monkeypatch.setattr(os, "execv", lambda path, arguments: seen.append(arguments[1:]))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for verb in ("run", "chat", "bench", "inspect", "verify", "render", "tokenize"):
        mote(verb, "org/demo", "and/or")
    assert seen[0] == ["run", str(demo), "and/or"] and all(words[1:] == [str(demo), "and/or"] for words in seen)
    assert hub.requests == []


def test_run_pulls_what_is_absent(hub, demo, mote, monkeypatch, store_home):
    from tests.mote.fake_hub import FakeRepository

    hub.repositories["org/far"] = FakeRepository({"far.mote": demo.read_bytes()})
    seen = []
    monkeypatch.setattr(os, "execv", lambda path, arguments: seen.append(arguments[1:]))
    result = mote("run", "org/far", "Hello")
    assert seen == [["run", str(store_home / "models/org/far/far.mote"), "Hello"]]
    assert result.out == "" and "pulling org/far: far.mote" in result.err
    hub.repositories["org/raw"] = FakeRepository({"config.json": b"{}", "model.safetensors": b"1"})
    assert "Do it with: mote pull org/raw --yes" in mote("run", "org/raw", "Hello").err
    assert "the hub has no model 'org/nothing'" in mote("run", "org/nothing", "Hello").err
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("verb", "words", "index"),
    [
        ("run", ["M", "and/or"], [0]),
        ("run", ["--greedy", "M", "and/or"], [1]),
        ("run", ["--regex", "and/or", "M"], [2]),
        ("run", ["--draft", "M", "M", "p"], [1, 2]),
        ("run", ["-t4", "--temperature=1", "M"], [2]),
        ("run", ["-t", "4", "M"], [2]),
        ("run", ["--profile", "and/or", "M"], [2]),
        ("bench", ["--profile", "M"], [1]),
        ("run", ["--", "M", "and/or"], [1]),
        ("run", ["x.mote", "and/or"], []),
        ("run", ["M", "--help"], []),
    ],
)
def test_the_model_among_the_words(demo, verb, words, index):
    words = ["org/demo" if word == "M" else word for word in words]
    expected = [str(demo) if i in index else word for i, word in enumerate(words)]
    assert with_model_paths(verb, words, runner_binary()) == expected


@pytest.mark.parametrize("verb", ["run", "bench", "render"])
def test_switches_of_the_runner_are_those_that_take_no_value(verb):
    runner = runner_binary()
    switches = runner_switches(verb, runner)
    assert "--help" in switches and len(switches) > 2
    for switch in sorted(switches - {"--help", "-h"}):
        # CLI11 complains about an option that lacks its value, not about a switch.
        said = subprocess.run([runner, verb, "no-such.mote", switch], capture_output=True, text=True, input="")
        assert f"{switch}: 1 required" not in said.stderr, switch
