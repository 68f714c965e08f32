"""The command `mote-runner chat`: through pipes, and on a terminal as a person uses it."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess

import pytest

# Qwen's form, with all that a conversation may have.
TEMPLATE = (
    "{%- if tools %}{{- '<|im_start|>system\\n' + tools | tojson + '<|im_end|>\\n' }}{%- endif %}"
    "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' }}"
    "{%- if message.reasoning_content and loop.last %}"
    "{{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}{%- endif %}{{- message.content }}"
    "{%- for call in message.tool_calls or [] %}{{- '\\n<tool_call>\\n' + call.function | tojson + '\\n</tool_call>' }}"
    "{%- endfor %}{{- '<|im_end|>\\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- if enable_thinking is not defined %}"
    "{{- '<think>\\n' }}{%- endif %}{%- endif %}"
)
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "d", "parameters": {}}}]
GREEDY = ("--temperature", 0, "--max-new-tokens", 12)


@pytest.fixture(scope="module")
def thinking(with_metadata):
    return with_metadata(chat_template=TEMPLATE.encode())


def chat(runner, path, text, *options):
    command = [runner, "chat", *map(str, (path, *options))]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=300, check=False)


def statistics(line: str) -> tuple[int, int, int, int]:
    """tokens of the prompt, of them kept and computed, and tokens generated"""
    prompt, kept, generated = re.search(r"prompt (\d+) tokens(?: \((\d+) kept\))?.*, (\d+) generated", line).groups()
    return int(prompt), int(kept or 0), int(prompt) - int(kept or 0), int(generated)


def test_a_pipe_chats_a_message_a_line(runner, demo_path):
    text = "def f(\n/reset\ndef f(\n/nothing\n/result 1\n/exit\nnot read\n"
    done = chat(runner, demo_path, text, *GREEDY)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout[: len(done.stdout) // 2], done.stdout[len(done.stdout) // 2 :]
    assert first == second
    assert first.strip()
    assert "there is no command '/nothing'" in done.stderr
    assert "no tool call waits for a result" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert ">" not in done.stderr


def test_replies_are_those_of_the_library(runner, demo, demo_path):
    done = chat(runner, demo_path, "def f(\n", *GREEDY, "--system", "Be brief.")
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "def f("}]
    ids = demo.apply_chat_template(messages, add_generation_prompt=True)
    assert done.stdout.rstrip("\n") == demo.generate(ids, do_sample=False, max_new_tokens=12).text().rstrip("\n")


def test_reasoning_is_shown_beside_the_answer(runner, thinking, tmp_path):
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    done = chat(runner, thinking.path, "def f(\n", *GREEDY, "--tools", tmp_path / "tools.json")
    assert done.returncode == 0, done.stderr
    ids = thinking.apply_chat_template([{"role": "user", "content": "def f("}], tools=TOOLS, add_generation_prompt=True)
    text = thinking.generate(ids, do_sample=False, max_new_tokens=12, skip_special_tokens=False, skip_eos=True).text()
    assert "</think>" not in text  # all of what the small model says is in the reasoning that the prompt began
    shown = done.stderr.partition("\ncut off after 12 tokens")[0]
    assert shown.strip() == text.strip()
    assert done.stdout == "\n"


@pytest.mark.parametrize(
    "switch", [["--no-thinking"], ["--set", "enable_thinking=false"], "/set enable_thinking false"]
)
def test_variables_reach_the_template(runner, thinking, switch):
    options, text = ([], f"{switch}\ndef f(\n") if isinstance(switch, str) else (switch, "def f(\n")
    done = chat(runner, thinking.path, text, *GREEDY, *options)
    ids = thinking.apply_chat_template(
        [{"role": "user", "content": "def f("}], add_generation_prompt=True, enable_thinking=False
    )
    text = thinking.generate(ids, do_sample=False, max_new_tokens=12, skip_special_tokens=False, skip_eos=True).text()
    assert done.stdout.rstrip("\n") == text.rstrip("\n")


def test_a_turn_computes_only_what_is_new(runner, demo, demo_path):
    done = chat(runner, demo_path, "def f(\nimport os\n", *GREEDY, "--stats")
    first, second = (statistics(line) for line in done.stderr.splitlines() if line.startswith("prompt "))
    assert first[1] == 0
    # All that was read and generated, but for the last token that nothing has computed.
    assert second[1] >= first[0] + first[3] - 1
    assert second[2] == second[0] - second[1] < first[0] + 12


def test_a_conversation_goes_on_as_if_read_at_once(runner, demo_path, tmp_path):
    path = tmp_path / "chat.json"
    lines = f"def f(\n/save {path}\nimport os\n"
    done = chat(runner, demo_path, lines, *GREEDY, "--seed", 3)
    assert done.returncode == 0, done.stderr
    saved = json.loads(path.read_text())
    assert [message["role"] for message in saved["messages"]] == ["user", "assistant"]
    assert saved["settings"] == {"temperature": 0, "max_new_tokens": 12, "seed": 3}
    loaded = chat(runner, demo_path, "import os\n", "--load", path)
    assert loaded.returncode == 0, loaded.stderr
    assert done.stdout.endswith(loaded.stdout)
    (tmp_path / "list.json").write_text(json.dumps(saved["messages"]))
    assert chat(runner, demo_path, "import os\n", "--load", tmp_path / "list.json", *GREEDY).stdout == loaded.stdout


def test_retry_and_undo_give_the_same_as_a_new_chat(runner, demo_path):
    options = ("--seed", 5, "--max-new-tokens", 12)
    once = chat(runner, demo_path, "def f(\n", *options).stdout
    undone = chat(runner, demo_path, "import os\n/undo\ndef f(\n", *options).stdout
    assert undone.endswith(once)
    retried = chat(runner, demo_path, "def f(\n/retry\n", *options).stdout
    assert retried.startswith(once)
    assert retried.endswith(chat(runner, demo_path, "def f(\n", "--seed", 6, "--max-new-tokens", 12).stdout)
    assert retried != 2 * once


COLOUR = {"type": "object", "properties": {"colour": {"enum": ["red", "green"]}}, "required": ["colour"]}


@pytest.mark.parametrize("by_command", [False, True])
def test_replies_follow_a_grammar_until_it_is_taken_away(runner, demo_path, tmp_path, by_command):
    (tmp_path / "colour.json").write_text(json.dumps(COLOUR))
    (tmp_path / "answer.lark").write_text('start: "yes" | "no"')
    grammars = {
        "json-schema": (json.dumps(COLOUR), lambda text: json.loads(text)["colour"] in ("red", "green")),
        "json-schema ": (str(tmp_path / "colour.json"), lambda text: json.loads(text)["colour"] in ("red", "green")),
        "regex": ("[0-9]{3}", lambda text: re.fullmatch("[0-9]{3}", text)),
        "grammar": (str(tmp_path / "answer.lark"), lambda text: text in ("yes", "no")),
    }
    for name, (value, holds) in grammars.items():
        name = name.strip()
        options = () if by_command else (f"--{name}", value)
        command = f"/set {name} {value}\n" if by_command else ""
        done = chat(
            runner, demo_path, f"{command}def f(\nimport os\n/set {name} default\nhello\n", *GREEDY[:3], 30, *options
        )
        assert done.returncode == 0, done.stderr
        first, second, *free = done.stdout.split("\n")
        assert holds(first), first
        assert holds(second), second
        assert free[0].startswith("Hello! I am")


def test_what_is_left_of_a_think_block_is_content_under_a_grammar(runner, thinking):
    done = chat(runner, thinking.path, "def f(\n", *GREEDY, "--regex", "[a-c]{4}")
    assert re.fullmatch("[a-c]{4}\n", done.stdout)
    assert done.stderr == ""


def test_grammars_are_saved_with_a_conversation(runner, demo_path, tmp_path):
    path = tmp_path / "chat.json"
    options = (*GREEDY, "--json-schema", json.dumps(COLOUR), "--json-whitespace", "compact")
    done = chat(runner, demo_path, f"def f(\n/save {path}\n", *options)
    assert done.returncode == 0, done.stderr
    loaded = chat(runner, demo_path, "import os\n", "--load", path)
    assert loaded.returncode == 0, loaded.stderr
    assert json.loads(loaded.stdout)["colour"] in ("red", "green")


@pytest.mark.parametrize(
    "options", [["--speculative", "lookup"], ["--draft", "DEMO"], ["--draft", "DEMO", "--draft-tokens", "2"]]
)
@pytest.mark.parametrize("by_command", [False, True])
def test_speculation_changes_no_reply_and_is_told(runner, demo_path, options, by_command):
    options = [str(demo_path) if option == "DEMO" else option for option in options]
    lines = "def f(a):\n/stats\n    return a\n"
    plain = chat(runner, demo_path, lines.replace("/stats\n", ""), "--greedy", "--max-new-tokens", 48)
    commands = "".join(f"/set {name[2:]} {value}\n" for name, value in zip(options[::2], options[1::2], strict=True))
    asked = chat(
        runner, demo_path, (commands if by_command else "") + lines, "--greedy", "--max-new-tokens", 48,
        *([] if by_command else options),
    )  # fmt: skip
    assert asked.returncode == 0, asked.stderr
    assert asked.stdout == plain.stdout
    assert re.search(r"\d+ of \d+ drafted tokens accepted", asked.stderr)


def test_a_template_that_refuses_ends_nothing(runner, with_metadata):
    template = "{%- if messages | length == 1 %}{{- raise_exception('one is too few') }}{%- endif %}" + TEMPLATE
    path = with_metadata(chat_template=template.encode()).path
    done = chat(runner, path, "one\n/system two\nthree\n", *GREEDY, "--no-thinking")
    assert "one is too few. /reset starts anew" in done.stderr
    assert done.stdout.strip()
    assert done.returncode == 2


def test_special_tokens_reach_the_template(runner, demo, with_metadata):
    template = "{{ bos_token }}|{{ eos_token }}|{{ messages[0].content }}"
    path = with_metadata(chat_template=template.encode()).path
    messages = json.dumps([{"content": "x"}])
    shown = subprocess.run([runner, "render", str(path), "-"], input=messages, capture_output=True, text=True).stdout
    ids = [demo.info["bos_token_id"], demo.generation_config["eos_token_id"][0]]
    assert shown == "|".join(["" if id is None else demo.detokenize([id]) for id in ids] + ["x"])
    own = subprocess.run(
        [runner, "render", str(path), "-", "--set", "eos_token=<e>"], input=messages, capture_output=True, text=True
    ).stdout
    assert own.endswith("|<e>|x")


def test_a_full_context_is_told_or_shifted(runner, demo_path):
    lines = "".join(f"import os{i}\n" for i in range(6))
    options = ("--greedy", "--max-new-tokens", 12, "--context-length", 64, "--system", "You write Python.")
    refused = chat(runner, demo_path, lines, *options)
    assert refused.returncode == 2
    assert "64" in refused.stderr and "/reset starts anew" in refused.stderr
    shifted = chat(runner, demo_path, lines + "/stats\n", *options, "--overflow", "shift")
    assert shifted.returncode == 0, shifted.stderr
    assert "forgotten" in shifted.stderr


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--tools", "TOOLS"], "must be a JSON list of tool schemas"),
        (["--tools", "nowhere.json"], "--tools nowhere.json"),
        (["--load", "nowhere.json"], "nowhere.json: cannot be opened"),
        (["--top-p", "2"], "top_p = 2"),
        (["--stop", ""], "stop_strings"),
        (["--overflow", "wrap"], "overflow"),
        (["--set", "x"], "NAME=VALUE"),
        (["--temperature", "hot"], "temperature"),
        (["--regex", "(a"], ") is missing"),
        (["--regex", "a", "--json-schema", "{}"], "only one of them"),
        (["--json-schema", '{"type": "strnig"}'], '#/type = "strnig"'),
        (["--grammar", "nowhere.lark"], "nowhere.lark: cannot be read"),
        (["--draft", "nowhere.mote"], "nowhere.mote"),
        (["--draft-tokens", "-1"], "draft"),
    ],
)
def test_bad_options_are_named(runner, demo_path, tmp_path, options, named):
    (tmp_path / "tools.json").write_text('{"name": "f"}')
    done = chat(runner, demo_path, "x\n", *[str(tmp_path / "tools.json") if o == "TOOLS" else o for o in options])
    assert done.returncode == 2
    assert named in " ".join(done.stderr.split())
    assert done.stdout == ""


def test_a_file_without_a_template_is_refused(runner, with_metadata):
    done = chat(runner, with_metadata(chat_template=b"").path, "x\n")
    assert done.returncode == 2
    assert "has no chat template: use 'run'" in done.stderr


def test_whoever_reads_may_leave(runner, demo_path):
    command = [runner, "chat", str(demo_path), "--greedy"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        process.stdin.write(b"def f(\n" * 100)
        process.stdin.close()
        process.stdout.read(1)
        process.stdout.close()
        assert process.wait(timeout=300) != 0


SECONDS = 120  # without a sign of life: it hangs


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, command, **environment):
        self.shown = ""
        self._pid, self._descriptor = pty.fork()
        if self._pid == 0:
            os.environ.update({"TERM": "xterm", "LC_ALL": "C"} | environment)
            os.execv(command[0], [str(part) for part in command])

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def expect(self, text: str) -> str:
        """Returns what was shown since the last time, up to this text."""
        while text not in self.shown:
            assert self.read(), f"it ended before {text!r}: {self.shown!r}"
        before, self.shown = self.shown.split(text, 1)
        return before + text

    def read(self) -> bool:
        """Adds what is shown next; False at the end."""
        ready, _, _ = select.select([self._descriptor], [], [], SECONDS)
        assert ready, f"nothing follows {self.shown!r}"
        try:
            read = os.read(self._descriptor, 65536)
        except OSError:  # Linux: the other side is closed
            read = b""
        # Bracketed paste is switched on and off around each line.
        self.shown = re.sub(r"\x1b\[\?2004[hl]", "", self.shown + read.decode("utf-8", "replace"))
        return bool(read)

    def end(self) -> int:
        """Returns the exit status."""
        while self.read():
            pass
        os.close(self._descriptor)
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])


@pytest.fixture
def terminal(runner, demo_path, tmp_path):
    opened = []

    def start(*options, path=demo_path, **environment):
        environment = {"XDG_STATE_HOME": str(tmp_path), "NO_COLOR": "1"} | environment
        opened.append(Terminal([runner, "chat", path, *options], **environment))
        opened[-1].expect("Ctrl-D leaves")
        opened[-1].expect(">")
        return opened[-1]

    yield start
    for one in opened:
        try:
            os.kill(one._pid, signal.SIGKILL)
            os.waitpid(one._pid, 0)
        except OSError:
            pass


def test_a_person_chats_on_a_terminal(terminal, tmp_path):
    one = terminal(*GREEDY)
    one.type("/system Sei höflich\r")
    one.expect("> ")
    one.type("/system\r")
    one.expect("\nSei höflich")
    one.expect("> ")
    one.type("def f(\r")
    one.expect("def f(")
    assert len(one.expect("\n> ").strip()) > 3
    one.type("given up\x03")
    one.expect("> ")
    one.type("/stats\r")
    one.expect(", 12 generated")
    one.expect("> ")
    one.type("\x04")
    assert one.end() == 0
    history = tmp_path / "mote" / "chat_history"
    assert history.read_text().splitlines() == ["/system Sei höflich", "/system", "def f(", "/stats"]
    assert history.stat().st_mode & 0o777 == 0o600


def has_line_editing(one, history) -> bool:
    one.type("ac\x1b[Db\r")  # a, c, one to the left, b
    one.expect("\n> ")
    return history.exists()


def test_lines_are_edited_and_found_again(terminal, tmp_path):
    one = terminal(*GREEDY)
    if not has_line_editing(one, tmp_path / "mote" / "chat_history"):
        pytest.skip("this build has no libedit")
    one.type("/system x\u00e9z\x1b[D\x1b[D\x7fa\r")  # two to the left, deletes x
    one.expect("> ")
    one.type("/system\r")
    one.expect("\na\u00e9z")
    one.expect("> ")
    one.type("/sys\t\r")
    one.expect("\na\u00e9z")
    one.expect("> ")
    one.type("\x1b[200~/system one\ntwo\x1b[201~")
    one.type("\r")
    one.expect("> ")
    one.type("/exit\r")
    assert one.end() == 0
    lines = (tmp_path / "mote" / "chat_history").read_text().splitlines()
    assert lines == ["abc", "/system a\u00e9z", "/system", "/system one\\ntwo", "/exit"]
    again = terminal(*GREEDY)
    again.type("\x1b[A\x1b[A\r")  # the last but one entry
    again.expect("> ")
    again.type("/system\r")
    again.expect("one\r\ntwo")


def test_ctrl_c_stops_the_reply_only(terminal):
    one = terminal("--greedy", "--system", "x")
    one.type("/set min-new-tokens 1800\r")
    one.expect("> ")
    one.type("def f(\r")
    one.expect("def f(\r\n")
    while len(one.shown.strip()) < 20:
        assert one.read()
    one.type("\x03")
    one.expect("[stopped]")
    one.expect("> ")
    one.type("/set min-new-tokens default\r")
    one.expect("> ")
    one.type("/set max-new-tokens 3\r")
    one.expect("> ")
    one.type("And?\r")
    one.expect("And?")
    one.expect("> ")
    one.type("/stats\r")
    prompt, kept, _, generated = statistics(one.expect("context ").replace("\r\n", ""))
    assert generated <= 3
    assert kept > 8  # the stopped reply is part of the conversation
    assert prompt > kept
    one.type("\x04")
    assert one.end() == 0


def test_ctrl_d_during_a_reply_leaves_after_it(terminal):
    one = terminal("--greedy", "--min-new-tokens", "200", "--max-new-tokens", "200")
    one.type("def f(\r")
    one.expect("def f(\r\n")
    assert one.read()
    one.type("\x04")
    assert one.end() == 0


def test_history_can_be_switched_off(terminal, tmp_path):
    one = terminal(*GREEDY, "--no-history")
    one.type("/exit\r")
    assert one.end() == 0
    assert not (tmp_path / "mote").exists()
    named = terminal(*GREEDY, "--history", str(tmp_path / "own"))
    named.type("/exit\r")
    assert named.end() == 0
    assert (tmp_path / "own").read_text() == "/exit\n"


def test_colours_are_for_terminals_that_want_them(terminal, thinking):
    one = terminal(*GREEDY, path=thinking.path, NO_COLOR="")
    one.type("def f(\r")
    one.expect("\x1b[2m")
    one.expect("\x1b[0m")
    one.type("\x04")
    plain = terminal(*GREEDY, path=thinking.path)
    plain.type("def f(\r")
    plain.expect("def f(")
    assert "\x1b[2m" not in plain.expect("\n\r\n")


def test_a_simple_terminal_is_enough(terminal):
    one = terminal(*GREEDY, TERM="dumb")
    one.type("/help\r")
    one.expect("/retry")
    one.type("/exit\r")
    assert one.end() == 0
