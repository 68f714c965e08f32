"""Clients that leave, push, probe, or are pages of other sites. The server goes on, exactly."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import threading

import httpx
import openai
import pytest

from llm_runner import Session
from llm_server import Limits
from tests.llm_server.conftest import WAIT, running
from tests.llm_server.script import slow_down

MESSAGES = [{"role": "user", "content": "What is a list?"}]
CHAT = {"model": "demo", "messages": MESSAGES, "temperature": 0}
LONG = CHAT | {"ignore_eos": True}  # until the context is full
SHORT = CHAT | {"max_tokens": 5}


@pytest.fixture(scope="module")
def small(demo):
    limits = Limits(
        max_body_bytes=20_000,
        body_seconds=0.5,
        header_seconds=0.5,
        keep_alive_seconds=0.5,
        header_bytes=8192,
        max_connections=40,
    )
    # A long context, so that what is not cancelled takes much longer than the test waits for.
    session = {"threads": 1, "context_length": 2048}
    with running(demo, max_queue=1, limits=limits, session=session) as found:
        yield found


def idle(engine) -> bool:
    return engine.num_running == 0 and engine.num_waiting == 0


def raw(server, data: bytes) -> bytes:
    """Sends bytes and returns what comes until the server closes, or has answered."""
    with socket.create_connection(server.address, timeout=WAIT) as connection:
        connection.sendall(data)
        answer = b""
        with contextlib.suppress(ConnectionResetError):  # the server has not read all of it
            while part := connection.recv(65536):
                answer += part
                if b"\r\n\r\n" in answer and b'"error"' in answer:
                    break
        return answer


def works(server, demo) -> None:
    found = server.openai().chat.completions.create(**SHORT).choices[0].message.content
    assert found == demo.chat(MESSAGES, max_new_tokens=5, do_sample=False).run()["content"]


@pytest.mark.parametrize("events", range(1, 21))
def test_leaving_a_stream_cancels_the_generation(small, demo, events):
    session = small.engine._free[0]
    with small.http() as http, http.stream("POST", "/v1/chat/completions", json=LONG | {"stream": True}) as response:
        lines = response.iter_lines()
        for _ in range(events):
            next(lines)
        assert small.engine.num_running == 1
    small.until(idle)
    assert session.position < 2000
    works(small, demo)


def test_leaving_before_a_whole_answer_cancels_it(small, demo):
    session = small.engine._free[0]
    session.reset()
    with small.http() as http, pytest.raises(httpx.ReadTimeout):
        http.post("/v1/chat/completions", json=LONG, timeout=0.3)
    small.until(idle)
    assert session.position < 2000
    works(small, demo)


def test_leaving_the_queue_frees_the_place(small, demo):
    with (
        small.http() as first,
        first.stream("POST", "/v1/chat/completions", json=LONG | {"stream": True}) as running_one,
    ):
        lines = running_one.iter_lines()  # httpx closes the stream with its iterator
        next(lines)
        for _ in range(3):
            with small.http() as second, pytest.raises(httpx.ReadTimeout):
                second.post("/v1/chat/completions", json=SHORT, timeout=0.1)
            small.until(lambda engine: engine.num_waiting == 0)
    small.until(idle)
    works(small, demo)


def test_a_full_queue_refuses_and_those_who_wait_get_their_turn(small, demo, monkeypatch):
    results = []
    slow_down(monkeypatch, 0.01)
    with (
        small.http() as first,
        first.stream("POST", "/v1/chat/completions", json=LONG | {"stream": True}) as running_one,
    ):
        lines = running_one.iter_lines()  # httpx closes the stream with its iterator
        next(lines)
        waiting = threading.Thread(target=lambda: results.append(small.openai().chat.completions.create(**SHORT)))
        waiting.start()
        small.until(lambda engine: engine.num_waiting == 1)
        assert small.http().get("/health").json() == {"status": "ok", "model": "demo", "running": 1, "waiting": 1}
        for stream in (False, True):
            refused = small.http().post("/v1/chat/completions", json=SHORT | {"stream": stream})
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "queue_full")
            assert refused.headers["retry-after"] == "1"
    waiting.join()
    assert results[0].choices[0].message.content
    works(small, demo)


def test_side_by_side_each_gets_its_own_text(demo):
    questions = ["What is a list?", "What is a dict?", "import os", "def f("]
    asked = [CHAT | {"messages": [{"role": "user", "content": text}], "max_tokens": 12} for text in questions]
    found = [None] * len(asked)

    def ask(i):
        found[i] = server.openai().chat.completions.create(**asked[i]).choices[0].message.content

    with running(demo, parallel=2) as server:
        for _ in range(2):
            threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(asked))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for one, text in zip(asked, found, strict=True):
                assert text == demo.chat(one["messages"], max_new_tokens=12, do_sample=False).run()["content"]


def test_time_is_limited(demo):
    with running(demo, timeout=0.2, session={"threads": 1, "context_length": 2048}) as server:
        found = server.openai().chat.completions.create(**CHAT, extra_body={"ignore_eos": True}).choices[0]
        assert found.finish_reason == "length"
        assert server.engine._free[0].position < 2000
        stream = server.openai().chat.completions.create(**CHAT, extra_body={"ignore_eos": True}, stream=True)
        assert [chunk.choices[0].finish_reason for chunk in stream][-1] == "length"
        server.until(idle)


def test_a_request_may_have_a_shorter_time(small):
    http = small.http()
    for path, body in [("/v1/chat/completions", LONG), ("/v1/completions", {"prompt": "x", "ignore_eos": True})]:
        answer = http.post(path, json=body | {"max_time": 0.01}).json()
        assert answer["choices"][0]["finish_reason"] == "length"
        assert answer["usage"]["completion_tokens"] < 2000


def test_names_that_are_not_ours_are_refused(server, client):
    with server.http() as http:
        for host, status in [
            ("evil.example", 403), ("localhost.evil.example", 403), ("", 403), ("[", 403), ("demo.local:80", 403),
            ("localhost:1234", 200), ("127.0.0.1", 200), ("[::1]:80", 200), ("192.168.1.5:8080", 200),
        ]:  # fmt: skip
            for path in ("/health", "/v1/models", "/"):
                assert http.get(path, headers={"Host": host}).status_code == status, (host, path)
    error = server.http().get("/health", headers={"Host": "evil.example"}).json()["error"]
    assert (error["code"], error["param"]) == ("host_not_allowed", None)
    assert "--allow-host" in error["message"]


def test_pages_of_other_sites_are_refused_unless_allowed(demo, server):
    with server.http() as http:
        for origin in ("http://evil.example", "null", "http://127.0.0.1:1", "https://localhost"):
            refused = http.post("/v1/chat/completions", json=SHORT, headers={"Origin": origin})
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "origin_not_allowed")
            assert "access-control-allow-origin" not in refused.headers
        own = http.post("/v1/chat/completions", json=SHORT, headers={"Origin": server.url})
        assert own.status_code == 200
        assert "access-control-allow-origin" not in own.headers
    site = "http://localhost:3000"
    with (
        running(demo, allowed_origins=[site], allowed_hosts=["Demo.local"], api_key="secret") as other,
        other.http() as http,
    ):
        preflight = {"Origin": site, "Access-Control-Request-Method": "POST",
                     "Access-Control-Request-Headers": "authorization,content-type"}  # fmt: skip
        allowed = http.options("/v1/chat/completions", headers=preflight)
        assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (200, site)
        answer = http.get("/v1/models", headers={"Origin": site, "Authorization": "Bearer secret"})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, site)
        assert http.options("/v1/models", headers=preflight | {"Origin": "http://evil.example"}).status_code == 403
        assert http.get("/health", headers={"Host": "demo.local:8080"}).status_code == 200


def test_the_api_key_is_asked_for(demo):
    with running(demo, api_key="sécret") as server:
        with pytest.raises(openai.AuthenticationError) as raised:
            server.openai(api_key="wrong").models.list()
        assert raised.value.code == "invalid_api_key"
        with server.http() as http:
            for header in ({}, {"Authorization": "Bearer"}, {"Authorization": "sécret".encode()}):
                refused = http.get("/v1/models", headers=header)
                assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
            right = {"Authorization": "Bearer sécret".encode()}
            assert http.get("/v1/models", headers=right).json()["data"][0]["id"] == "demo"
            assert http.get("/health").status_code == 200


def test_models_are_listed(client, server):
    assert [model.id for model in client.models.list()] == ["demo"]
    assert client.models.retrieve("demo").owned_by == "mote"
    with pytest.raises(openai.NotFoundError) as raised:
        client.models.retrieve("../../etc/passwd")
    assert raised.value.code == "model_not_found"
    for method, path, status in [("GET", "/v1/chat/completions", 405), ("GET", "/nowhere", 404), ("POST", "/", 405)]:
        error = server.http().request(method, path)
        assert (error.status_code, error.json()["error"]["type"]) == (status, "invalid_request_error")


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"5", b'"x"', b"\xff\xfe", b"{" * 10_000, b"[" * 15_000, b'{"messages":' + b"[" * 15_000,
     b'{"messages": NaN}', b'{"temperature": 1e999, "messages": []}', b'{"seed": 1' + b"0" * 5000 + b"}",
     b'{"messages": [{"role": "user", "content": "\\ud800"}], "max_tokens": 1, "temperature": "x"}'],
    ids=lambda body: body[:12].decode("latin-1"),
)  # fmt: skip
def test_bad_json_is_refused(small, body):
    for path in ("/v1/chat/completions", "/v1/completions"):
        answer = small.http().post(path, content=body)
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["message"]


def test_every_prefix_of_a_request_is_refused_or_answered(small, demo):
    body = json.dumps(SHORT | {"stop": ["x"], "logit_bias": {"5": 1.5}, "max_tokens": 1}).encode()
    with small.http() as http:
        for length in range(len(body)):
            assert http.post("/v1/chat/completions", content=body[:length]).status_code == 400
        assert http.post("/v1/chat/completions", content=body).status_code == 200


@pytest.mark.parametrize("depth", [129, 450, 600, 900])
def test_deep_nesting_names_the_field(small, depth):
    deep = "[" * depth + "]" * depth
    for field in ("messages", "tools", "chat_template_kwargs", "response_format", "unheard_of"):
        value = deep if field in ("messages", "tools", "unheard_of") else f'{{"x": {deep}}}'
        body = f'{{"messages": [{{"role": "user", "content": "x"}}], "max_tokens": 1, "{field}": {value}}}'
        error = small.http().post("/v1/chat/completions", content=body)
        assert (error.status_code, error.json()["error"]["param"]) == (400, field), error.text


@pytest.mark.parametrize("value", [-1, 2**31, 2**63, -(2**63) - 1, 1e308, "NaN", [], {}, True])
@pytest.mark.parametrize("field", ["n", "max_tokens", "top_k", "temperature", "seed", "top_logprobs", "min_tokens"])
def test_numbers_out_of_range_are_refused(small, field, value):
    answer = small.http().post("/v1/chat/completions", json=SHORT | {field: value})
    allowed = (field, value) in [("seed", -1), ("seed", 2**31), ("seed", 2**63)]
    assert answer.status_code == (200 if allowed else 400), answer.text
    if not allowed:
        assert answer.json()["error"]["param"] == field


def test_half_surrogate_pairs_are_refused_and_whole_ones_are_text(small):
    for field in (b'"model": "\\ud800"', b'"stop": "\\ud800"', b'"messages": [{"role": "user", "content": "\\udc00"}]'):
        answer = small.http().post("/v1/chat/completions", content=b"{" + field + b"}")
        assert (answer.status_code, "surrogate" in answer.json()["error"]["message"]) == (400, True)
    body = b'{"messages": [{"role": "user", "content": "\\ud83d\\ude00 \\u0000"}], "max_tokens": 1}'
    assert small.http().post("/v1/chat/completions", content=body).status_code == 200


def test_leaving_while_a_session_goes_back_does_not_give_it_away(demo, monkeypatch):
    begun, may_end = threading.Event(), threading.Event()
    reply = Session.reply

    def slowly(self, conversation, **options):
        begun.set()
        may_end.wait()
        return reply(self, conversation, **options)

    body = json.dumps(SHORT).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with running(demo) as server:
        monkeypatch.setattr(Session, "reply", slowly)
        with socket.create_connection(server.address, timeout=WAIT) as connection:
            connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            assert begun.wait(WAIT)
        assert server.engine.num_running == 1
        may_end.set()
        server.until(idle)
        monkeypatch.undo()
        works(server, demo)


def test_large_bodies_are_refused_however_they_come(small, demo):
    large = json.dumps(SHORT | {"user": "x" * 30_000}).encode()
    with small.http() as http:
        assert http.post("/v1/chat/completions", content=large).status_code == 413
        chunked = http.post("/v1/chat/completions", content=(large[i : i + 1000] for i in range(0, len(large), 1000)))
        assert (chunked.status_code, chunked.json()["error"]["type"]) == (413, "invalid_request_error")
        bomb = http.post("/v1/chat/completions", content=gzip.compress(large), headers={"Content-Encoding": "gzip"})
        assert bomb.status_code == 415
    start = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
    for headers in (b"Content-Length: -5", b"Content-Length: 99999999999999999999999", b"Content-Length: x",
                    b"Transfer-Encoding: chunked\r\n\r\n-5\r\nx"):  # fmt: skip
        status = raw(small, start + headers + b"\r\n\r\n").split(b" ", 2)[1]
        assert status in (b"400", b"413"), headers
    works(small, demo)


def test_headers_are_limited(small, demo):
    for headers in (
        b"X: " + b"x" * 100_000,
        b"".join(b"X%d: y\r\n" % i for i in range(20_000)),
        b"\x00: 1",
        b"no colon",
    ):
        answer = raw(small, b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n\r\n")
        assert not answer or answer.split(b" ", 2)[1] in (b"400", b"431")
    works(small, demo)


def test_slow_clients_are_let_go(small, demo):
    for data in (b"", b"GET /health HT", b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: "):
        assert raw(small, data) == b""  # closed; a server that waits on would make this run into its time limit
    keep = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hea"
    assert raw(small, keep).startswith(b"HTTP/1.1 200")
    slow = raw(small, b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
    assert slow.split(b" ", 2)[1] == b"408"
    works(small, demo)


def test_too_many_connections_are_refused_and_the_rest_goes_on(demo):
    with running(demo, limits=Limits(max_connections=20, header_seconds=600.0)) as server:
        held = [socket.create_connection(server.address) for _ in range(30)]
        try:
            assert server.http().get("/health").status_code == 503
        finally:
            for connection in held:
                connection.close()
        while server.http().get("/health").status_code != 200:
            pass
        works(server, demo)
