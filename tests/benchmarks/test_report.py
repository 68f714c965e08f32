"""The pure parts of the comparison: costs of a shape, summaries, ratios, table, and the command line's errors."""

import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import compare, plot, report
from benchmarks.peers import all_peers, environment, worker
from benchmarks.peers.checkpoint import Checkpoint
from benchmarks.shapes import EXPERTS, SHAPES, decode_bytes, head_weights, layer_weights, prefill_macs, write_checkpoint

FACTS = {"version": "1", "head": "4 bits", "cache": "float32", "conversion": "as it is"}
LIMITS = {"read_gb_s": 50.0, "int8_gmac_s": 1000.0}
SETUP = {"threads": 2, "prompt_tokens": 256, "generate_tokens": 256}
MODEL = "llama-3.2-1b"


def run(prefill: float, decode: float, private: float = 10) -> dict:
    return {
        "prompt_tokens": 256, "prefill_seconds": 256 / prefill, "decode_steps": 255, "decode_seconds": 255 / decode,
        "load_seconds": 0.5, "cold_start_seconds": 1.25, "private_mb": private, "file_backed_mb": 700,
    }  # fmt: skip


def rows() -> list[dict]:
    return [
        report.row(MODEL, "mote", [run(600, 60), run(500, 50, private=30), run(700, 70)], 700_000_000, FACTS),
        report.row(MODEL, "mote-xnnpack", [run(450, 30)], 701_000_000, FACTS),
        report.row(MODEL, "llama.cpp", [run(250, 40)], 700_000_000, FACTS),
        report.row(MODEL, "executorch", [run(300, 30)], 900_000_000, FACTS),
        report.failed_row(MODEL, "openvino-genai", "no | such thing", FACTS),
    ]


def test_weights_of_the_shapes():
    # 16 layers of q, k, v, o and three ffn matrices; 28 for the other.
    llama, qwen = SHAPES["llama-3.2-1b"], SHAPES["qwen3-0.6b"]
    assert layer_weights(llama) == 16 * (2 * 2048 * 2048 + 2 * 512 * 2048 + 3 * 8192 * 2048)
    assert layer_weights(qwen) == 28 * (2 * 2048 * 1024 + 2 * 1024 * 1024 + 3 * 3072 * 1024)
    assert head_weights(qwen) == 151936 * 1024


def test_weights_of_experts_are_those_that_a_token_chooses():
    qwen, olmoe = SHAPES["qwen3-30b-a3b-4-layers"], SHAPES["olmoe-4-layers"]
    attention = 2 * 4096 * 2048 + 2 * 512 * 2048
    assert layer_weights(qwen) == 4 * (attention + 128 * 2048 + 8 * 3 * 768 * 2048)
    assert layer_weights(olmoe) == 4 * (4 * 2048 * 2048 + 64 * 2048 + 8 * 3 * 1024 * 2048)


def test_a_latent_counts_once_for_all_heads():
    deepseek = SHAPES["deepseek-v2-lite-4-layers"]
    attention = 16 * 192 * 2048 + 576 * 2048 + 16 * 256 * 512 + 2048 * 2048
    experts = 64 * 2048 + (6 + 2) * 3 * 1408 * 2048
    assert layer_weights(deepseek) == 4 * attention + 3 * 10944 * 2048 + 3 * experts
    assert decode_bytes(deepseek, 100, 2) == decode_bytes(deepseek, 0, 2) + 100 * 4 * 576 * 2


def test_decode_reads_every_weight_once_and_the_cache_at_its_depth():
    llama = SHAPES[MODEL]
    weights = (layer_weights(llama) + head_weights(llama)) * 4.25 / 8
    assert decode_bytes(llama, 0, 4) == weights
    assert decode_bytes(llama, 384, 4) == weights + 384 * 16 * 2 * 8 * 64 * 4


def test_prefill_counts_the_head_for_one_position():
    llama = SHAPES[MODEL]
    assert prefill_macs(llama, 256) * 256 == 256 * layer_weights(llama) + head_weights(llama)


def test_row_summarises_the_runs():
    row = rows()[0]
    assert row["prefill_tok_s"] == pytest.approx({"min": 500, "median": 600, "max": 700})
    assert row["decode_tok_s"] == pytest.approx({"min": 50, "median": 60, "max": 70})
    assert (row["file_mb"], row["private_mb"], row["file_backed_mb"], row["load_s"]) == (700, 30, 700, 0.5)


def test_no_runs_is_an_error():
    with pytest.raises(ValueError, match="no values"):
        report.spread([])


def test_ratios_compare_medians_with_the_best_peer_of_each_phase():
    lines = report.rooflines(SHAPES[MODEL], LIMITS, 256, 256, "float32")
    found = report.ratios(rows(), lines)
    assert found["prefill_vs_best_peer"] == pytest.approx(600 / 300)
    assert found["decode_vs_best_peer"] == pytest.approx(60 / 40)
    assert found["prefill_vs_roofline"] == pytest.approx(600 / (1000e9 / prefill_macs(SHAPES[MODEL], 256)))
    assert found["decode_vs_roofline"] == pytest.approx(60 / (50e9 / decode_bytes(SHAPES[MODEL], 384, 4)))


def test_a_smaller_cache_raises_the_roofline():
    wide, narrow = (report.rooflines(SHAPES[MODEL], LIMITS, 256, 256, cache)["decode"] for cache in ("float32", "int8"))
    assert narrow > wide


@pytest.mark.parametrize("kept", [[0, 1], [2, 3, 4], [4]])
def test_ratios_are_none_where_a_side_is_missing(kept):
    found = report.ratios([rows()[index] for index in kept], None)
    assert found == dict.fromkeys(report.RATIOS)


def test_document_has_the_promised_shape():
    found = json.loads(json.dumps(report.document(rows(), LIMITS, SETUP)))
    assert found["limits"] == LIMITS
    assert set(found["ratios"]) == {MODEL}
    assert set(found["ratios"][MODEL]) == {"mote", "mote-xnnpack"}
    assert set(found["ratios"][MODEL]["mote"]) == set(report.RATIOS)
    for row in found["rows"]:
        assert {"model", "runtime", "load_s", "file_mb", "private_mb", "file_backed_mb"} <= set(row)
        for phase in ("prefill_tok_s", "decode_tok_s"):
            assert row[phase] is None if row["error"] else set(row[phase]) == {"min", "median", "max"}


def test_document_without_limits_has_no_roofline():
    found = report.document(rows(), None, SETUP | {"limits_error": "no such option"})
    assert found["limits"] == {"read_gb_s": None, "int8_gmac_s": None}
    assert found["rooflines"] == {}
    assert found["ratios"][MODEL]["mote"]["decode_vs_roofline"] is None
    assert found["ratios"][MODEL]["mote"]["decode_vs_best_peer"] == pytest.approx(1.5)
    assert "no such option" in report.table(found)


def test_table_shows_figures_failures_and_ratios():
    text = report.table(report.document(rows(), LIMITS, SETUP))
    assert (
        "| llama-3.2-1b | mote | 600.0 (500.0 to 700.0) | 60.0 (50.0 to 70.0) | 0.50 | 1.25 | 700 | 30 | 700 |" in text
    )
    assert "failed: no \\| such thing" in text
    assert "| llama-3.2-1b | mote / best peer | 2.00 | 1.50 |" in text
    assert "| llama-3.2-1b | mote-xnnpack / best peer | 1.50 | 0.75 |" in text
    assert len({line.replace("\\|", "").count("|") for line in text.splitlines() if line.startswith("|")}) == 1


def test_plot_puts_decode_under_the_bandwidth_line_and_prefill_to_its_right():
    found = plot.points(report.document(rows(), LIMITS, SETUP), MODEL)
    assert {point["runtime"] for point in found} == {"mote", "mote-xnnpack", "llama.cpp", "executorch"}
    ours = {point["phase"]: point for point in found if point["runtime"] == "mote"}
    assert ours["decode"]["intensity"] == pytest.approx(8 / 4.25)
    assert ours["prefill"]["intensity"] > 100 * ours["decode"]["intensity"]
    macs = prefill_macs(SHAPES[MODEL], 256) / 1e9
    found = [ours["prefill"][name] for name in ("least_gmac_s", "gmac_s", "most_gmac_s")]
    assert found == pytest.approx([500 * macs, 600 * macs, 700 * macs])
    assert ours["prefill"]["tok_s"] == 600


def test_the_knee_of_the_limit_is_where_reading_and_computing_take_equally_long():
    assert plot.knee(LIMITS) == (20, 1000)
    assert plot.knee({"read_gb_s": None, "int8_gmac_s": None}) is None
    for intensities in ([2.0, 500.0], [2.0], [500.0]):
        xs, ys = plot.limit_line(LIMITS, intensities)
        assert xs == sorted(xs) and xs[1] == 20
        assert xs[0] <= min(intensities) and xs[2] >= max(intensities)
        assert ys == pytest.approx([50 * xs[0], 1000, 1000])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--models", "gpt-9"], "'gpt-9': must be one of llama-3.2-1b, qwen3-0.6b"),
        (["--peers", "mote,nobody"], "'nobody': must be one of mote, mote-xnnpack, mote-xnnpack-head, llama.cpp"),
        (["--peers", ","], "nothing named"),
        (["--threads", "0"], "'0': must be an integer of at least 1"),
        (["--generate-tokens", "1"], "'1': must be an integer of at least 2"),
    ],
)
def test_bad_arguments_are_named(capsys, arguments, message):
    with pytest.raises(SystemExit) as caught:
        compare.parse(arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_quick_means_fewer_rounds_and_paths_follow_the_report():
    options = compare.parse(["--quick", "--json", "a/b.json"])
    assert options.rounds == compare.QUICK_ROUNDS
    assert (options.markdown, options.plot) == (Path("a/b.md"), Path("a/b.png"))
    assert compare.parse(["--quick", "--rounds", "7"]).rounds == 7


def test_every_peer_is_listed_once_and_ours_needs_nothing():
    peers = all_peers()
    assert list(peers) == [
        "mote",
        "mote-xnnpack",
        "mote-xnnpack-head",
        "llama.cpp",
        "onnxruntime-genai",
        "openvino-genai",
        "executorch",
        "mote-vulkan",
        "llama.cpp-vulkan",
    ]
    assert [name for name, peer in peers.items() if not peer.requirements] == list(report.OURS)
    assert peers["mote"].cache in report.KV_ELEMENT_BYTES


def test_a_backend_chooses_its_runtimes():
    assert compare.parse(["--backend", "vulkan"]).peers == ["mote-vulkan", "llama.cpp-vulkan"]
    assert "executorch" in compare.parse([]).peers and "mote-vulkan" not in compare.parse([]).peers
    assert compare.parse(["--peers", "mote,mote-vulkan"]).peers == ["mote", "mote-vulkan"]


def test_steps_on_a_gpu_are_those_of_the_prompt_and_of_the_deepest_decoding():
    def test(method, depth, calls, count, size, **more):
        tokens = 512 if method == "prefill" else calls
        everything = {"count": count, "bytes": size}
        return {"method": method, "tokens": tokens, "depth": depth, "calls": calls, "all": everything} | more

    tests = [
        test("prefill", 0, 2, 600, 1e9, submissions=4), test("decode", 0, 4, 1000, 1e9, submissions=4),
        test("prefill", 639, 2, 700, 2e9, submissions=6), test("decode", 639, 4, 1200, 3e9, submissions=8),
    ]  # fmt: skip
    found = report.steps({"profile": {"tests": tests}})
    prefill = {"tokens": 512, "depth": 0, "dispatches": 300, "submissions": 2, "bytes": 0.5e9}
    assert found["prefill"] == prefill
    assert found["decode"] == {"tokens": 1, "depth": 641.5, "dispatches": 300, "submissions": 2, "bytes": 0.75e9}
    facts = FACTS | {"cache": "float16", "steps": found}
    text = report.table(report.document([report.row(MODEL, "mote-vulkan", [run(9, 3)], 7, facts)], None, SETUP))
    times = 0.75e9 / decode_bytes(SHAPES[MODEL], 641.5, 2)
    assert f"| {MODEL} | mote-vulkan | decode 1 | 300 | 2.0 | 750.0 | {times:.3f} |" in text
    assert f"| {MODEL} | mote-vulkan | prefill 512 | 300 | 2.0 | 500.0 |  |" in text


def test_a_peer_that_fails_is_an_entry_and_the_rest_goes_on(tmp_path, monkeypatch):
    def python(self, name, requirements, without, build):
        if name == "executorch":
            raise environment.PeerError("no wheel for this platform")
        return "python"

    def measured(self, peer, python, arguments, label, timeout):
        if peer.name == "openvino-genai":
            raise environment.PeerError("illegal instruction")
        report = {"prefill_seconds": 1.0, "decode_seconds": 5.0, "load_seconds": 0.1, "start_seconds": 0.3}
        return environment.Measured(report, private_mb=5, file_backed_mb=9)

    monkeypatch.setattr(environment.Environment, "python", python)
    monkeypatch.setattr(environment.Environment, "version", lambda self, python, distribution: "1.0")
    monkeypatch.setattr(environment.Environment, "convert", lambda self, peer, model, python: tmp_path)
    monkeypatch.setattr(environment.Environment, "run", measured)
    monkeypatch.setattr(environment.Environment, "limits", lambda self, threads, settings: LIMITS)
    options = compare.parse(["--models", MODEL, "--rounds", "2", "--work", str(tmp_path)])
    contest = compare.Contest(environment.Environment(tmp_path), options)
    contest.prepare()
    contest.race()
    found = {row["runtime"]: row for row in contest.document()["rows"]}
    assert found["executorch"]["error"] == "no wheel for this platform"
    assert found["openvino-genai"]["error"] == "illegal instruction"
    assert found["mote"]["runs"] == found["llama.cpp"]["runs"] == 2
    assert found["mote"]["decode_tok_s"]["median"] == pytest.approx(51)


def test_runtimes_are_kept_to_avx2_where_they_can_be_told():
    told = {name: compare.with_avx2(peer).settings for name, peer in compare.all_peers().items()}
    assert "avx2" in told["mote"]["MOTE_CPU_FEATURES"]
    assert "-DGGML_NATIVE=OFF" in told["llama.cpp"]["CMAKE_ARGS"]
    assert told["onnxruntime-genai"] == told["openvino-genai"] == {}


def test_what_is_compiled_for_avx2_has_an_environment_of_its_own(monkeypatch, tmp_path):
    made = []
    monkeypatch.setattr(
        environment.Environment, "python", lambda self, name, requirements, without, build: made.append((name, build))
    )
    monkeypatch.setattr(environment.Environment, "convert", lambda self, peer, model, python: tmp_path)
    peer = compare.all_peers()["llama.cpp"]
    for each in (peer, compare.with_avx2(peer)):
        compare.prepared(environment.Environment(tmp_path), each, MODEL)
    assert made == [("llama.cpp", None), ("llama.cpp-avx2", peer.avx2["CMAKE_ARGS"])]


def test_what_is_compiled_for_a_gpu_is_no_build_for_avx2(monkeypatch, tmp_path):
    made = []
    monkeypatch.setattr(
        environment.Environment, "python", lambda self, name, requirements, without, build: made.append((name, build))
    )
    monkeypatch.setattr(environment.Environment, "convert", lambda self, peer, model, python: tmp_path)
    peer = compare.with_avx2(compare.all_peers()["llama.cpp-vulkan"])
    compare.prepared(environment.Environment(tmp_path), peer, MODEL)
    assert made == [("llama.cpp-vulkan", peer.settings["CMAKE_ARGS"])]
    assert "-DGGML_VULKAN=ON" in peer.settings["CMAKE_ARGS"]


def test_worker_times_the_prompt_and_the_rest_apart():
    class Counting:
        def generate(self, prompt, count):
            start = worker.time.perf_counter()
            return list(range(count)), [start + 2 + index for index in range(count)]

    found = worker.measure(Counting(), [1, 2, 3], 5)
    assert found["prefill_seconds"] == pytest.approx(2, abs=0.5)
    assert found["decode_seconds"] == pytest.approx(4)


def test_worker_refuses_a_generation_that_stopped_early():
    class Stopping:
        def generate(self, prompt, count):
            return [1], [worker.time.perf_counter()]

    with pytest.raises(RuntimeError, match="1 tokens instead of 5"):
        worker.measure(Stopping(), [1], 5)


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="AMX is asked for on Linux x86-64"
)
def test_refusing_tiles_denies_that_request_and_no_other():
    code = """
import ctypes, os
from benchmarks.peers import tiles
tiles.refuse()
library = ctypes.CDLL(None, use_errno=True)
assert library.syscall(158, 0x1023, 18) == -1
assert ctypes.get_errno() == 1  # EPERM
base = ctypes.c_ulong()
assert library.syscall(158, 0x1003, ctypes.byref(base)) == 0  # ARCH_GET_FS
assert os.getpid() > 0
"""
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)


def test_last_line_is_what_a_terminal_would_still_show():
    assert environment.last_line("first\n10%\r20%\rdone: no\n\n") == "done: no"
    assert environment.last_line("") == "no output"


def test_checkpoint_is_what_transformers_calls_a_checkpoint(tmp_path):
    safetensors = pytest.importorskip("safetensors")
    config = SHAPES["qwen3-0.6b"] | {
        "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 1, "num_attention_heads": 2,
        "num_key_value_heads": 1, "head_dim": 32, "vocab_size": 100,
    }  # fmt: skip
    write_checkpoint(tmp_path, config)
    with safetensors.safe_open(tmp_path / "model.safetensors", "pt") as file:
        embedding = file.get_tensor("model.embed_tokens.weight")
        assert embedding.shape == (100, 64)
        assert 0.5 < float(embedding.float().std()) * 8 < 1.5
        assert "model.layers.0.self_attn.q_norm.weight" in list(file.keys())
    assert json.loads((tmp_path / "config.json").read_text())["vocab_size"] == 100


@pytest.mark.parametrize("shape", EXPERTS)
def test_checkpoints_with_experts_are_those_that_transformers_writes(tmp_path, shape):
    transformers = pytest.importorskip("transformers")
    config = SHAPES[shape] | {
        "hidden_size": 64, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 100,
        "num_key_value_heads": 1, "head_dim": 32, "num_experts_per_tok": 2, "bos_token_id": 1, "eos_token_id": 2,
    }  # fmt: skip
    config |= {"num_experts": 4} if "num_experts" in config else {}
    config |= {"moe_intermediate_size": 32} if "moe_intermediate_size" in config else {}
    config |= {"n_routed_experts": 4} if "n_routed_experts" in config else {}
    write_checkpoint(tmp_path, config)
    _, info = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(info[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))


def test_the_cache_type_reaches_mote_and_the_report_only():
    peers = {peer.name: compare.with_cache(peer, "int8") for peer in all_peers().values()}
    assert peers["mote"].cache == "int8"
    assert list(peers["mote"].settings.values()) == ["int8"]
    assert peers["llama.cpp"] == all_peers()["llama.cpp"]


def test_only_rows_of_queries_and_keys_of_llama_are_paired(tmp_path):
    config = SHAPES[MODEL] | {
        "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 1, "num_attention_heads": 2,
        "num_key_value_heads": 1, "head_dim": 32, "vocab_size": 100,
    }  # fmt: skip
    write_checkpoint(tmp_path, config)
    source = Checkpoint(tmp_path)
    queries, values = (f"model.layers.0.self_attn.{name}_proj.weight" for name in "qv")
    halves, pairs = source.tensor(queries), source.paired(queries)
    assert (pairs[0::2][:16] == halves[:16]).all()
    assert (pairs[1::2][:16] == halves[16:32]).all()
    assert (pairs[32::2] == halves[32:48]).all()
    assert (source.paired(values) == source.tensor(values)).all()
