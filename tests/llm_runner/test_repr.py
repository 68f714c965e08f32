"""What objects say of themselves: what they are, and that they are closed."""

import pytest

from llm_runner import Conversation, Grammar, Model, PrefixCache
from llm_runner.labels import count_text


@pytest.fixture
def model(demo_files):
    with Model.load(demo_files.path()) as model:
        yield model


def test_models(model, demo_files):
    expected = "<Model 'demo.mote': qwen3, 4.6 M parameters, 8da4w, context 2048, on cpu>"
    assert repr(model) == expected
    with Model.load(demo_files.path().read_bytes()) as in_memory:
        assert repr(in_memory) == expected.replace("'demo.mote'", "a model without a file")
    model.close()
    assert repr(model) == "<Model 'demo.mote', closed>"


def test_sessions(model):
    with model.session(context_length=64, kv_dtype="float16") as session:
        session.append([1, 2, 3])
        assert repr(session) == "<Session of 'demo.mote': 3 of 64 tokens, float16 cache>"
        with session.fork() as fork:
            assert repr(fork) == repr(session)
    assert repr(session) == "<Session of 'demo.mote', closed>"
    with model.session(context_length=32) as session:
        assert repr(session) == "<Session of 'demo.mote': 0 of 32 tokens, float16 cache>"


def test_generations(model):
    generation = model.generate("def", max_new_tokens=2, ignore_eos=True)
    assert repr(generation) == "<Generation: 0 tokens, running>"
    generation.text()
    assert repr(generation) == "<Generation: 2 tokens, length>"
    generation = model.generate("def")
    generation.close()
    assert repr(generation) == "<Generation: 0 tokens, closed>"


def test_chats(model):
    messages = [{"role": "user", "content": "Hi"}]
    conversation = Conversation(model, messages)
    count = len(conversation.ids)
    assert repr(conversation) == f"<Conversation of 'demo.mote': 1 messages, {count} tokens>"
    reply = model.chat(messages, max_new_tokens=1, ignore_eos=True)
    reply.run()
    assert repr(reply) == f"<ChatGeneration: {count} tokens of prompt, 1 of reply, length>"


def test_batches(model):
    with model.batch(max_sequences=4, context_length=64) as batch:
        batch.add("def", max_new_tokens=1)
        assert repr(batch) == "<Batch of 'demo.mote': 1 sequences, at most 4 at a time>"
    assert repr(batch) == "<Batch of 'demo.mote', closed>"


def test_grammars_and_caches(model):
    assert repr(Grammar(model, regex="a+")) == "<Grammar: regex 'a+'>"
    assert len(repr(Grammar(model, grammar="root ::= " + " | ".join(f'"{i}"' for i in range(99))))) < 90
    assert repr(PrefixCache(2_000_000)) == "<PrefixCache: 0.0 of 2.0 MB, 0 snapshots, 0 hits, 0 misses>"


def test_half_made_objects_do_not_raise():
    for kind in (Model, PrefixCache, Grammar, Conversation):
        assert repr(object.__new__(kind)) == f"<{kind.__name__}, closed>"


@pytest.mark.parametrize(
    ("count", "text"), [(999, "999"), (46 * 10**5, "4.6 M"), (596 * 10**6, "596 M"), (124 * 10**7, "1.2 B")]
)
def test_counts(count, text):
    assert count_text(count) == text
