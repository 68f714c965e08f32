"""`mote-runner run` with questions: the chat template, several prompts, files, JSON, and what a terminal shows."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess

import pytest

QUESTION = "Write a function that counts the vowels in a string."
GREEDY = ("--greedy", "--quiet")


def run(runner, *arguments, **options):
    return subprocess.run([runner, *map(str, arguments)], capture_output=True, text=True, timeout=300, **options)


def on_terminal(runner, *arguments, columns=40) -> str:
    """What a terminal of so many columns gets."""
    parent, child = pty.openpty()
    subprocess.run(["stty", "cols", str(columns)], stdin=child, check=True)
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"}
    command = [runner, *map(str, arguments)]
    with subprocess.Popen(command, stdin=child, stdout=child, stderr=child, env=environment) as process:
        os.close(child)
        shown = b""
        while True:
            try:
                part = os.read(parent, 65536)
            except OSError:  # nobody has the terminal any more
                break
            if not part:
                break
            shown += part
        process.wait(300)
    os.close(parent)
    return shown.decode().replace("\r\n", "\n")


def reply(demo, question, **options):
    messages = [{"role": "user", "content": question}]
    if (system := options.pop("system", None)) is not None:
        messages.insert(0, {"role": "system", "content": system})
    return demo.chat(messages, do_sample=False, **options).run()["content"]


def test_a_question_gets_the_reply_of_the_chat_template(runner, demo, demo_path):
    expected = reply(demo, QUESTION)
    assert expected.count("\n") > 2
    assert run(runner, "run", demo_path, QUESTION, *GREEDY).stdout.removesuffix("\n") == expected.removesuffix("\n")
    assert run(runner, "chat", demo_path, QUESTION, "--greedy").stdout.removesuffix("\n") == expected.removesuffix("\n")
    piped = run(runner, "run", demo_path, *GREEDY, input=QUESTION)
    assert piped.stdout.removesuffix("\n") == expected.removesuffix("\n")
    raw = run(runner, "run", demo_path, "--raw", QUESTION, *GREEDY, "-n", 8).stdout
    assert raw == demo.generate(QUESTION, do_sample=False, max_new_tokens=8).text() + "\n"


def test_what_looks_like_a_command_is_a_question(runner, demo, demo_path):
    assert (
        run(runner, "chat", demo_path, "/help", "--greedy", "-n", 8).stdout.strip()
        == reply(demo, "/help", max_new_tokens=8).strip()
    )


def test_system_message_and_files_are_part_of_the_conversation(runner, demo, demo_path, tmp_path):
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "b.txt").write_text("two")
    common = ("run", demo_path, "--json", "--greedy", "-n", 6, "--file", tmp_path / "a.txt", "-f", tmp_path / "b.txt")
    answer = json.loads(run(runner, *common, "Sum up", "--system", "Be brief.").stdout)
    assert answer["prompt"] == "Sum up\n\none\n\ntwo"
    assert answer["text"] == reply(demo, answer["prompt"], system="Be brief.", max_new_tokens=6)
    alone = json.loads(run(runner, *common).stdout)
    assert alone["prompt"] == "one\n\ntwo"
    piped = json.loads(run(runner, *common, "Sum up", "-f", "-", input="three").stdout)
    assert piped["prompt"] == "Sum up\n\none\n\ntwo\n\nthree"


@pytest.mark.parametrize("raw", [(), ("--raw",)])
def test_several_prompts_are_answered_one_by_one(runner, demo_path, raw):
    prompts = ["Hello", QUESTION, "def f("]
    alone = [run(runner, "run", demo_path, *raw, prompt, *GREEDY, "-n", 12).stdout for prompt in prompts]
    together = run(runner, "run", demo_path, *raw, prompts[0], prompts[1], "-p", prompts[2], *GREEDY, "-n", 12)
    assert together.stdout == "\n".join(alone), together.stderr
    lines = run(runner, "run", demo_path, *raw, *prompts, "--json", "--greedy", "-n", 12).stdout.splitlines()
    answers = [json.loads(line) for line in lines]
    assert [answer["prompt"] for answer in answers] == prompts
    assert [answer["text"].rstrip() for answer in answers] == [text.rstrip() for text in alone]
    for answer in answers:
        assert answer["finish_reason"] in ("eos", "length")
        assert answer["generated_tokens"] > 0 and answer["prompt_tokens"] > 0


def test_a_reply_that_is_cut_off_says_so(runner, demo_path):
    cut = run(runner, "run", demo_path, QUESTION, "--greedy", "-n", 5)
    assert "cut off after 5 tokens: --max-new-tokens allows no more" in cut.stderr
    assert "cut off" not in run(runner, "run", demo_path, "Hello", "--greedy").stderr
    full = run(runner, "run", demo_path, "--raw", "def f(", "--greedy", "--ignore-eos", "--context-length", 16)
    assert "the context of 16 is full (--context-length)" in full.stderr
    assert all(len(line) <= 80 for line in full.stderr.splitlines()), full.stderr


def test_names_of_other_software_are_taken(runner, demo_path):
    own = run(runner, "run", demo_path, QUESTION, *GREEDY, "--max-new-tokens", 6, "--context-length", 512).stdout
    foreign = run(runner, "run", demo_path, QUESTION, "--quiet", "--temp=0", "--n-predict", 6, "--ctx-size", 512)
    assert foreign.stdout == own, foreign.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["x", "--raw", "--system", "s"],
            "--raw continues text as it is, so --system, --tools and --set have no place",
        ),
        (["-", "-p", "-"], "standard input (-) can be read once, but it was named 2 times"),
        (["x", "-f", "nowhere.txt"], "--file nowhere.txt: cannot be read: No such file or directory"),
        (["a", "b", "--save-session", "s"], "--save-session take one prompt, but there are 2"),
        ([""], "the question is empty"),
        (["x", "--set", "novalue"], "novalue"),
    ],
)
def test_what_does_not_go_together_is_refused(runner, demo_path, arguments, message):
    done = run(runner, "run", demo_path, *arguments, input="")
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_a_terminal_gets_wrapped_and_coloured_markdown(runner, demo, demo_path):
    shown = on_terminal(runner, "run", demo_path, QUESTION, "--greedy")
    expected = reply(demo, QUESTION)
    assert "\x1b[35mdef\x1b[0m" in shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert plain.startswith(expected.rstrip())  # the code is not wrapped
    words = on_terminal(runner, "run", demo_path, "Hello", "--greedy", "--quiet")
    lines = re.sub(r"\x1b\[[0-9;]*m", "", words).rstrip().split("\n")
    assert len(lines) > 1 and all(len(line) <= 40 for line in lines)
    assert " ".join(lines) == reply(demo, "Hello").rstrip()
    raw = on_terminal(runner, "run", demo_path, "--raw", "Hello", "--greedy", "--quiet", "-n", 30)
    assert raw.rstrip() == demo.generate("Hello", do_sample=False, max_new_tokens=30).text().rstrip()
