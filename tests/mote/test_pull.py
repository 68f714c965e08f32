"""`mote pull`: downloads that are cut, damaged, refused or have no room; exports of checkpoints."""

import json
import shutil
import sys
import threading
import types
from pathlib import Path

import pytest

from mote import FileError
from mote.commands.pull import obtain
from mote.store.catalog import Store
from mote.store.download import Download
from mote.units import human_bytes
from tests.mote.fake_hub import COMMIT, FakeRepository


@pytest.fixture
def model(hub, content):
    hub.repositories["org/tiny"] = FakeRepository({"tiny-8da4w.mote": content, "README.md": b"# tiny"})
    return hub.repositories["org/tiny"]


def changed(content, by=1):
    """Another version of a file: of some bytes of weights."""
    return content[:-1] + bytes([content[-1] ^ by])


def stored(home, file="org/tiny/tiny-8da4w.mote"):
    return home / "models" / file


def test_downloads_and_remembers_where_from(hub, model, mote, store_home, content):
    size = human_bytes(len(content))
    result = mote("pull", "org/tiny")
    assert result.status == 0 and f"org/tiny: tiny-8da4w.mote, {size}" in result.out
    assert f"pulling org/tiny: tiny-8da4w.mote, {size}" in result.err
    path = stored(store_home)
    assert path.read_bytes() == content
    manifest = json.loads(path.with_name(path.name + ".json").read_text())
    assert (manifest["repo"], manifest["commit"], manifest["bytes"]) == ("org/tiny", COMMIT, len(content))
    assert (manifest["source"], manifest["license"]) == ("download", "apache-2.0")
    assert sorted(p.name for p in path.parent.iterdir()) == ["tiny-8da4w.mote", "tiny-8da4w.mote.json"]


def test_pulling_again_takes_only_what_is_new(hub, model, mote, store_home, content):
    size = human_bytes(len(content))
    mote("pull", "org/tiny")
    assert "is up to date" in mote("pull", "org/tiny").out
    assert len(hub.downloads()) == 1
    model.files["tiny-8da4w.mote"] = changed(content)
    assert f"{size} in" in mote("pull", "org/tiny").out
    assert stored(store_home).read_bytes() == changed(content)


def test_small_files_are_known_by_their_commit(hub, model, mote, content):
    size = human_bytes(len(content))
    model.lfs = False
    assert mote("pull", "org/tiny").status == 0
    assert "is up to date" in mote("pull", "org/tiny").out
    model.commit = "d" * 40
    assert f"{size} in" in mote("pull", "org/tiny").out


def test_goes_on_while_connections_break(hub, model, mote, store_home, content):
    hub.cuts = [100_000, 50_000, 1]
    assert mote("pull", "org/tiny", "--quiet").status == 0
    assert stored(store_home).read_bytes() == content
    first, second, third, _ = hub.downloads()
    assert "range" not in first
    assert (second["range"], second["if-range"]) == ("bytes=100000-", '"one"')
    assert third["range"] == "bytes=150000-"


def test_the_next_pull_goes_on_where_one_gave_up(hub, model, mote, store_home, content):
    size = human_bytes(len(content))
    hub.cuts = [100_000] + [0] * 5
    result = mote("pull", "org/tiny")
    assert result.status == 2 and f"broke off at 100.0 kB of {size}" in result.err
    assert "begun again it goes on from there" in result.err
    assert not stored(store_home).exists()
    assert "3%" in mote("list").out
    assert mote("pull", "org/tiny").status == 0
    assert hub.downloads()[-1]["range"] == "bytes=100000-"
    assert stored(store_home).read_bytes() == content


def test_ctrl_c_keeps_what_came(hub, model, mote, store_home, monkeypatch, content):
    end = Download._end

    def interrupted(self, broken):
        if broken:
            raise KeyboardInterrupt
        end(self, broken)

    hub.cuts = [60_000]
    with monkeypatch.context() as patch:
        patch.setattr(Download, "_end", interrupted)
        result = mote("pull", "org/tiny")
    assert result.status == 130 and "what came is kept" in result.err
    assert mote("pull", "org/tiny").status == 0
    assert hub.downloads()[-1]["range"] == "bytes=60000-"
    assert stored(store_home).read_bytes() == content


def test_begins_anew_where_the_file_has_changed_meanwhile(hub, model, mote, store_home, content):
    hub.cuts = [100_000]
    hub_etag = hub.etag

    def other_etag():
        hub.etag = '"two"'

    hub.cuts = [100_000] + [0] * 5
    mote("pull", "org/tiny")
    other_etag()
    assert mote("pull", "org/tiny").status == 0
    assert hub.downloads()[-1]["if-range"] == hub_etag
    assert stored(store_home).read_bytes() == content


def test_a_part_of_another_version_is_not_gone_on_with(hub, model, mote, store_home, content):
    hub.cuts = [100_000] + [0] * 5
    mote("pull", "org/tiny")
    model.files["tiny-8da4w.mote"] = changed(content)
    assert mote("pull", "org/tiny").status == 0
    assert "range" not in hub.downloads()[-1]
    assert stored(store_home).read_bytes() == changed(content)


@pytest.mark.parametrize("lfs", [True, False])
def test_what_arrives_damaged_is_refused_and_deleted(hub, model, mote, store_home, lfs):
    model.lfs = lfs
    hub.damage = True
    result = mote("pull", "org/tiny")
    assert result.status == 2 and "arrived damaged" in result.err
    assert list(stored(store_home).parent.iterdir()) == []
    hub.damage = False
    assert mote("pull", "org/tiny").status == 0


def test_says_what_room_is_missing_before_it_begins(hub, model, mote, monkeypatch, content):
    monkeypatch.setattr("mote.store.download.KEEP_FREE_BYTES", 1 << 60)
    result = mote("pull", "org/tiny")
    assert result.status == 2 and f"needs {human_bytes(len(content))} more" in result.err and "are free" in result.err
    assert hub.downloads() == []


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        ((403, "GatedRepo"), "is gated: accept its terms"),
        ((401, "GatedRepo"), "is gated: accept its terms"),
        ((403, "Forbidden"), "refuses it with status 403: the token has no right to it"),
        ((500, "Broken"), "refuses it with status 500"),
    ],
)
def test_refusals(hub, model, mote, refusal, expected):
    model.refusal = refusal
    result = mote("pull", "org/tiny")
    assert result.status == 2 and expected in result.err


def test_a_token_opens_what_is_private(hub, model, mote, monkeypatch):
    model.private_token = "secret"
    assert "no model 'org/tiny'" in mote("pull", "org/tiny").err
    monkeypatch.setenv("HF_TOKEN", "secret")
    assert mote("pull", "org/tiny").status == 0


@pytest.mark.parametrize(("wrong", "right"), [("org/tinny", "org/tiny"), ("ogr/tiny", "org/tiny")])
def test_unknown_models_get_the_closest(hub, model, mote, wrong, right):
    result = mote("pull", wrong)
    assert result.status == 2
    assert f"the hub has no model '{wrong}': did you mean '{right}'? There is no such file" in result.err


def test_unknown_revision(hub, model, mote):
    assert "org/tiny: has no revision 'v9'" in mote("pull", "org/tiny@v9").err


def test_a_revision_has_its_own_place(hub, model, mote, store_home, content):
    model.revisions = ("main", "v1")
    assert mote("pull", "org/tiny@v1").status == 0
    assert stored(store_home, "org/tiny@v1/tiny-8da4w.mote").read_bytes() == content
    with pytest.raises(FileError):
        Store(store_home).find("org/tiny")
    assert "org/tiny@v1" in mote("list").out


def test_several_files_need_a_word(hub, mote, store_home, content):
    hub.repositories["org/two"] = FakeRepository({"a-8w.mote": content, "a-4w.mote": changed(content)})
    assert "say which: org/two:a-4w, org/two:a-8w" in mote("pull", "org/two").err
    assert mote("pull", "org/two:8w").status == 0
    assert stored(store_home, "org/two/a-8w.mote").read_bytes() == content


def test_paths_of_a_repository_stay_inside_of_the_store(hub, mote, store_home, content):
    hub.repositories["org/evil"] = FakeRepository({"../../../x.mote": b"x"})
    assert "has neither .mote nor GGUF files nor a checkpoint" in mote("pull", "org/evil").err
    hub.repositories["org/deep"] = FakeRepository({"sub/x.mote": content})
    assert mote("pull", "org/deep:x").status == 0
    assert stored(store_home, "org/deep/sub/x.mote").read_bytes() == content


@pytest.mark.parametrize("name", ["tiny", "./org/tiny", "org/tiny.mote"])
def test_what_is_no_name(mote, store_home, name):
    assert "must be org/name" in mote("pull", name).err


def test_an_unreachable_hub(hub, model, mote, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    result = mote("pull", "org/tiny")
    assert result.status == 2 and "http://127.0.0.1:9 cannot be reached" in result.err


def test_offline_the_hub_is_not_asked(hub, model, mote, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    result = mote("pull", "org/tiny")
    assert result.status == 2 and "HF_HUB_OFFLINE forbids" in result.err
    assert hub.requests == []


def test_two_pulls_at_once_download_once(hub, model, mote, store_home):
    first = Download(Store(store_home), "org/tiny")
    next(iter(first.run()))
    results = []
    thread = threading.Thread(target=lambda: results.append(obtain("org/tiny", yes=False, quiet=True)))
    thread.start()
    thread.join(timeout=0.2)
    assert thread.is_alive() and len(hub.downloads()) == 1
    for _ in first.run():
        pass
    first.close()
    thread.join(timeout=30)
    path, is_new = results[0]
    assert path == stored(store_home) and not is_new and len(hub.downloads()) <= 2


@pytest.fixture
def checkpoint(hub, monkeypatch, demo_files):
    """A checkpoint on the hub; its export is a copy of the demo."""
    hub.repositories["org/big"] = FakeRepository(
        {"config.json": b"{}", "model.safetensors": bytes(1000)},
        config={"model_type": "qwen3"},
        num_parameters=596 * 10**6,
    )
    calls, demo = [], demo_files.path()

    def export(source, output, **options):
        calls.append((source, options))
        shutil.copy(demo, output)
        return types.SimpleNamespace(notes=["of the export"])

    # In place of the module, whose import brings PyTorch.
    monkeypatch.setitem(sys.modules, "llm_export.api", types.SimpleNamespace(export=export))
    return calls


def test_checkpoints_are_exported_when_somebody_says_so(checkpoint, mote, store_home):
    result = mote("pull", "org/big", answer="n\n")
    assert result.status == 130 and checkpoint == []
    assert "is a checkpoint (qwen3, 596 M parameters, 1.0 kB), not a .mote file" in result.err
    assert "[y/N]" in result.err
    result = mote("pull", "org/big", answer="y\n")
    assert result.status == 0 and "note: of the export" in result.err
    source, options = checkpoint[0]
    assert (source, options["recipe"], options["revision"]) == ("org/big", "8da4w", COMMIT)
    path = stored(store_home, "org/big/big-8da4w.mote")
    manifest = json.loads(path.with_name(path.name + ".json").read_text())
    assert (manifest["source"], manifest["model_type"]) == ("export", "qwen3")
    assert manifest["recipe"].startswith("8da4w")
    assert "is up to date" in mote("pull", "org/big").out and len(checkpoint) == 1


def test_where_nobody_can_be_asked_the_command_is_named(checkpoint, mote):
    result = mote("pull", "org/big:8w")
    assert result.status == 2 and "Do it with: mote pull org/big:8w --yes" in result.err
    assert mote("pull", "org/big:8w", "--yes").status == 0
    assert checkpoint[0][1]["recipe"] == "8w"


def test_what_is_quantized_already_is_kept(checkpoint, hub, mote):
    """A second rounding would cost what its makers paid for."""
    config = {"model_type": "llama", "quantization_config": {"quant_method": "gptq", "bits": 4}}
    hub.repositories["org/big"].config = config
    result = mote("pull", "org/big")
    assert "is a checkpoint (llama, quantized by gptq, 596 M parameters, 1.0 kB)" in result.err
    assert "Exporting it as stored downloads 1.0 kB, writes about 1.0 kB" in result.err
    assert mote("pull", "org/big", "--yes").status == 0
    assert mote("pull", "org/big", "--requantize", "--yes").status == 0
    assert mote("pull", "org/big:8da8w", "--requantize", "--yes").status == 0
    found = [(options["recipe"], options["requantize"]) for _, options in checkpoint]
    assert found == [("stored", False), ("8da4w", True), ("8da8w", True)]


@pytest.fixture
def gguf(hub, checkpoint):
    """A repository of GGUF files, each of whose contents tells which it is."""
    files = [
        "Tiny-1.5B-Q4_K_M.gguf", "Tiny-1.5B-Q8_0.gguf", "Tiny-1.5B-IQ4_XS.gguf", "mmproj-Tiny-1.5B-F16.gguf",
        "BF16/Tiny-1.5B-BF16-00002-of-00002.gguf", "BF16/Tiny-1.5B-BF16-00001-of-00002.gguf", "Tiny-1.5B-imatrix.gguf",
    ]  # fmt: skip
    hub.repositories["org/tiny-GGUF"] = FakeRepository(
        {file: file.encode() for file in files}, gguf={"architecture": "qwen2", "total": 15 * 10**8}
    )
    return checkpoint


def test_gguf_files_are_exported_as_they_are(gguf, mote, store_home):
    result = mote("pull", "org/tiny-GGUF")
    assert (
        "Tiny-1.5B-Q4_K_M.gguf is a GGUF file of org/tiny-GGUF (qwen2, 1.5 B parameters, 21 B), not a .mote file. "
        "Exporting it as stored downloads 21 B"
    ) in result.err
    assert mote("pull", "org/tiny-GGUF", "--yes").status == 0
    source, options = gguf[0]
    assert Path(source).read_bytes() == b"Tiny-1.5B-Q4_K_M.gguf"
    assert (options["recipe"], options["requantize"]) == (None, False)
    assert stored(store_home, "org/tiny-GGUF/Tiny-1.5B-Q4_K_M.mote").is_file()
    assert "is up to date" in mote("pull", "org/tiny-GGUF").out and len(gguf) == 1
    assert Store(store_home).find("org/tiny-GGUF:q4_k_m").is_file()


@pytest.mark.parametrize("tag", ["Q8_0", "q8_0", "Tiny-1.5B-Q8_0", "Tiny-1.5B-Q8_0.gguf"])
def test_a_word_tells_which_gguf_file(gguf, mote, store_home, tag):
    name = f"org/tiny-GGUF:{tag}"
    assert mote("pull", name, "--yes", "--requantize").status == 0
    assert (gguf[0][1]["recipe"], gguf[0][1]["requantize"]) == ("8da4w", True)
    assert mote("pull", name, "--yes").status == 0
    assert sorted(path.name for path in stored(store_home, "org/tiny-GGUF").glob("*.mote")) == [
        "Tiny-1.5B-Q8_0-8da4w.mote", "Tiny-1.5B-Q8_0.mote"
    ]  # fmt: skip
    assert Path(gguf[1][0]).name == "Tiny-1.5B-Q8_0.gguf"


def test_all_parts_of_a_gguf_file_are_downloaded(gguf, mote, store_home):
    assert mote("pull", "org/tiny-GGUF:bf16", "--yes").status == 0
    first = Path(gguf[0][0])
    assert first.name == "Tiny-1.5B-BF16-00001-of-00002.gguf"
    assert (first.parent / "Tiny-1.5B-BF16-00002-of-00002.gguf").is_file()
    assert stored(store_home, "org/tiny-GGUF/BF16/Tiny-1.5B-BF16.mote").is_file()
    assert "Tiny-1.5B-BF16.mote" in mote("pull", "org/tiny-GGUF:bf16").out


def test_gguf_files_that_no_word_tells_apart_are_named(gguf, hub, mote):
    del hub.repositories["org/tiny-GGUF"].files["Tiny-1.5B-Q4_K_M.gguf"]
    result = mote("pull", "org/tiny-GGUF")
    assert "has several GGUF files: say which: org/tiny-GGUF:BF16/Tiny-1.5B-BF16, org/tiny-GGUF:Tiny" in result.err
    assert "mmproj" not in result.err and "imatrix" not in result.err
    assert "has no GGUF file, or several, for 'Q5_0'" in mote("pull", "org/tiny-GGUF:Q5_0").err


def test_beside_a_checkpoint_a_gguf_file_wants_its_word(checkpoint, hub, mote):
    hub.repositories["org/big"].files["big-Q4_0.gguf"] = b"x"
    assert mote("pull", "org/big", "--yes").status == 0
    assert mote("pull", "org/big:Q4_0", "--yes").status == 0
    assert mote("pull", "org/big:8w", "--yes").status == 0
    assert [options["recipe"] for _, options in checkpoint] == ["8da4w", None, "8w"]


def test_without_the_exporter_the_line_to_install_it(checkpoint, mote, monkeypatch):
    monkeypatch.setattr("mote.extras.find_spec", lambda name: None if name == "torch" else name)
    result = mote("pull", "org/big", "--yes")
    assert result.status == 2 and "pip install 'mote-llm[export]'" in result.err


def test_without_the_hubs_client_one_sentence(mote, store_home, monkeypatch):
    monkeypatch.setattr("mote.store.hub.find_spec", lambda name: None)
    result = mote("pull", "org/tiny")
    assert result.status == 2 and "pip install huggingface_hub" in result.err
