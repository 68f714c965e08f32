"""Generations as applications use them: streamers of transformers, asyncio, cancelling, limits, chats."""

from __future__ import annotations

import asyncio
import threading

import pytest
from transformers import AutoTokenizer, TextIteratorStreamer, TextStreamer

from llm_runner import ArgumentError, Model, TemplateError
from tests.llm_runner.conftest import DEMO
from tests.llm_server.script import saying

PROMPT = "def read_lines(path):\n"
GREEDY = {"do_sample": False, "ignore_eos": True}
MESSAGES = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "What is a list?"}]
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {}}}]


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(DEMO)


def greedy(model, prompt, count):
    generation = model.generate(prompt, max_new_tokens=count, **GREEDY)
    return generation.text(), generation.token_ids


def test_a_text_streamer_of_transformers_prints_prompt_and_text(demo, tokenizer, capsys):
    text, ids = greedy(demo, PROMPT, 12)
    for decoder in (tokenizer, demo):
        generation = demo.generate(PROMPT, streamer=TextStreamer(decoder), max_new_tokens=12, **GREEDY)
        assert capsys.readouterr().out == PROMPT + text + "\n"
        assert (generation.token_ids, generation.finish_reason) == (ids, "length")
        assert generation.text() == text
    demo.generate(PROMPT, streamer=TextStreamer(tokenizer, skip_prompt=True), max_new_tokens=12, **GREEDY)
    assert capsys.readouterr().out == text + "\n"


def test_a_text_iterator_streamer_gets_the_text_in_another_thread(demo, tokenizer):
    streamer = TextIteratorStreamer(tokenizer, skip_prompt=True, timeout=60)
    options = {"streamer": streamer, "max_new_tokens": 12, **GREEDY}
    with demo.session() as session:
        thread = threading.Thread(target=session.generate, args=(PROMPT,), kwargs=options)
        thread.start()
        assert "".join(streamer) == greedy(demo, PROMPT, 12)[0]
        thread.join()


def test_a_streamer_that_fails_ends_the_generation_and_hears_so(demo):
    class Failing:
        ended = 0
        seen = 0

        def put(self, value):
            self.seen += 1
            if self.seen == 3:
                raise RuntimeError("full")

        def end(self):
            self.ended += 1

    streamer = Failing()
    with demo.session() as session:
        with pytest.raises(RuntimeError, match="full"):
            session.generate(PROMPT, streamer=streamer, max_new_tokens=12, **GREEDY)
        assert (streamer.seen, streamer.ended) == (3, 1)
        session.reset()
        assert session.generate(PROMPT, max_new_tokens=12, **GREEDY).text() == greedy(demo, PROMPT, 12)[0]


def test_pieces_have_text_ids_and_logprobs(demo):
    generation = demo.generate(PROMPT, max_new_tokens=8, logprobs=True, **GREEDY)
    pieces = list(generation.pieces())
    text, ids = greedy(demo, PROMPT, 8)
    assert "".join(piece.text for piece in pieces) == text
    assert [piece.token_id for piece in pieces if piece.token_id is not None] == ids
    assert [piece.logprob for piece in pieces if piece.logprob is not None] == generation.logprobs
    assert [piece.finish_reason for piece in pieces] == [None] * (len(pieces) - 1) + ["length"]


def test_stop_token_ids_end_the_text_before_them(demo):
    _, ids = greedy(demo, PROMPT, 12)
    first = ids.index(ids[7])
    generation = demo.generate(PROMPT, max_new_tokens=12, stop_token_ids=[ids[7]], **GREEDY)
    assert generation.text() == demo.detokenize(ids[:first], skip_special_tokens=True)
    assert generation.token_ids == ids[: first + 1]
    assert generation.finish_reason == "stop_token"
    for wrong in ([demo.info["vocab_size"]], [-1], ["x"], "x"):
        with pytest.raises(ArgumentError, match="token id"):
            demo.generate(PROMPT, stop_token_ids=wrong)


def test_max_time_ends_it(demo):
    generation = demo.generate(PROMPT, max_time=1e-9, **GREEDY)
    generation.text()
    assert (generation.finish_reason, len(generation.token_ids)) == ("time", 1)
    assert greedy(demo, PROMPT, 5)[0] == demo.generate(PROMPT, max_new_tokens=5, max_time=600, **GREEDY).text()
    for wrong in (-1, float("inf"), float("nan"), "long"):
        with pytest.raises(ArgumentError, match="max_time"):
            demo.generate(PROMPT, max_time=wrong)


def test_cancelling_at_any_point_leaves_the_session_exact(demo):
    ids = demo.tokenize(PROMPT * 12)
    _, expected = greedy(demo, ids, 40)
    with demo.session(prefill_chunk=16) as session:
        for point in range(25):
            session.reset()
            generation = session.generate(ids, max_new_tokens=40, **GREEDY)
            # From the middle of the prompt to the middle of the text, wherever the other thread happens to be.
            timer = threading.Timer(0.0004 * point, generation.cancel)
            timer.start()
            generation.text()
            timer.join()
            got = generation.token_ids
            assert got == expected[: len(got)]
            assert generation.finish_reason == ("length" if len(got) == 40 else "cancelled")
            if len(got) == 40:
                continue
            assert session.tokens == (ids + got[:-1])[: session.position]
            rest = (ids + got)[session.position :]
            again = session.generate(rest, max_new_tokens=40 - len(got), **GREEDY)
            again.text()
            assert got + again.token_ids == expected


def test_a_cancel_that_comes_too_late_touches_nothing(demo):
    with demo.session() as session:
        first = session.generate(PROMPT, max_new_tokens=2, **GREEDY)
        first.text()
        first.cancel()
        second = session.generate(first.token_ids[-1:], max_new_tokens=3, **GREEDY)
        second.text()
        assert first.token_ids + second.token_ids == greedy(demo, PROMPT, 5)[1]


def test_async_for_gives_the_same_text_side_by_side(demo):
    async def collect(prompt):
        return "".join([piece async for piece in demo.agenerate(prompt, max_new_tokens=12, **GREEDY)])

    async def both():
        return await asyncio.gather(collect(PROMPT), collect("import "))

    assert asyncio.run(both()) == [greedy(demo, PROMPT, 12)[0], greedy(demo, "import ", 12)[0]]


def test_leaving_the_async_loop_stops_the_model(demo):
    async def leave(session):
        async with session.agenerate(PROMPT, max_new_tokens=200, **GREEDY) as stream:
            async for _ in stream:
                break
        return stream.generation

    with demo.session() as session:
        generation = asyncio.run(leave(session))
        assert generation.statistics["generated_tokens"] == len(generation.token_ids) < 10
        position = session.position
        assert position == len(demo.tokenize(PROMPT)) + len(generation.token_ids) - 1


def test_cancelling_the_task_cancels_the_prompt_under_way(demo):
    prompt = demo.tokenize(PROMPT * 400)[:3000]

    async def main(session):
        stream = session.agenerate(prompt, max_new_tokens=5, **GREEDY)
        task = asyncio.ensure_future(anext(stream))
        while session.position == 0:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return stream.generation

    with demo.session(prefill_chunk=8, threads=1) as session:
        generation = asyncio.run(main(session))
        assert 0 < session.position < len(prompt)
        assert generation.token_ids == []
        rest = session.generate(prompt[session.position :], max_new_tokens=5, **GREEDY)
        rest.text()
        assert rest.token_ids == greedy(demo, prompt, 5)[1]


def test_errors_of_an_async_generation_arrive(demo):
    async def main():
        async for _ in demo.agenerate(PROMPT, temperature=-1.0):
            pass

    with pytest.raises(ArgumentError, match="temperature"):
        asyncio.run(main())


def test_chat_renders_generates_and_gives_a_message(demo):
    ids = demo.apply_chat_template(MESSAGES, add_generation_prompt=True)
    reply = demo.chat(MESSAGES, max_new_tokens=12, do_sample=False)
    events = list(reply)
    expected = demo.generate(ids, max_new_tokens=12, do_sample=False)
    text = expected.text()
    assert {event.kind for event in events} == {"content"}
    assert "".join(event.text for event in events) == text
    assert reply.message == {"role": "assistant", "content": text}
    assert (reply.token_ids, reply.finish_reason) == (expected.token_ids, expected.finish_reason)
    assert (reply.prompt_tokens, reply.cached_tokens) == (len(ids), 0)
    assert demo.chat(MESSAGES, max_new_tokens=12, do_sample=False).run() == reply.message


def test_a_further_turn_of_a_session_reads_its_new_text_only(demo):
    messages = list(MESSAGES)
    with demo.session() as session:
        for question in ("And a tuple?", "And a set?"):
            reply = session.chat(messages, max_new_tokens=6, do_sample=False)
            messages += [reply.run(), {"role": "user", "content": question}]
        before = session.position
        last = session.chat(messages, max_new_tokens=6, do_sample=False)
        assert before <= last.cached_tokens + 2 < last.prompt_tokens
        assert last.run() == demo.chat(messages, max_new_tokens=6, do_sample=False).run()
        assert last.statistics["prompt_tokens"] == last.prompt_tokens - last.cached_tokens


def test_async_chat(demo):
    async def main():
        async with demo.achat(MESSAGES, max_new_tokens=6, do_sample=False) as stream:
            events = [event async for event in stream]
        return events, stream.generation.message

    events, message = asyncio.run(main())
    assert "".join(event.text for event in events) == message["content"]


def test_calls_have_ids_that_are_unique_in_the_conversation(demo):
    hermes = "<tool_call>\n{%- for m in messages %}{{ m.content }}{%- endfor %}<think>"
    earlier = [{"type": "function", "function": {"name": "look", "arguments": {}}}] * 2
    messages = [*MESSAGES, {"role": "assistant", "content": "", "tool_calls": earlier}]
    text = 'Hm.</think><tool_call>{"name": "look", "arguments": {"at": 1}}</tool_call>'
    reply = demo.chat(messages, tools=TOOLS, chat_template=hermes, **saying(demo, text))
    events = list(reply)
    assert [event.id for event in events if event.kind == "tool_call_begin"] == ["call00002"]
    assert reply.message["tool_calls"][0]["id"] == "call00002"
    assert reply.message["reasoning_content"] == "Hm."


def test_bad_chats_are_refused(demo, demo_path):
    with pytest.raises(TemplateError, match="no"):
        demo.chat(MESSAGES, chat_template="{{ raise_exception('no') }}")
    with pytest.raises(ArgumentError, match="there is no option 'max_length': it counts the prompt too"):
        demo.chat(MESSAGES, max_length=3)
    with Model.load(demo_path) as model, pytest.raises(ArgumentError, match="finite"):
        model.chat([{"role": "user", "content": float("nan")}])
