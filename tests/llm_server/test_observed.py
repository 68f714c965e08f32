"""What a server tells of itself: figures for Prometheus, a line for each request, a description of its endpoints."""

from __future__ import annotations

import json
import logging
import re
import socket

import jsonschema
from prometheus_client.parser import text_string_to_metric_families

from tests.llm_server.conftest import running

CHAT = {"messages": [{"role": "user", "content": "What is a list?"}], "max_tokens": 4, "ignore_eos": True}


def test_metrics_count_requests_and_tokens(demo):
    with running(demo) as server:
        http = server.http()
        prompt = http.post("/v1/chat/completions", json=CHAT).json()["usage"]["prompt_tokens"]
        http.post("/v1/messages", json=CHAT | {"model": "demo"})
        http.post("/v1/chat/completions", json=CHAT | {"model": "gpt"})
        http.get("/nowhere")
        text = http.get("/metrics").text
    found = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    model = ("model", "demo")

    def requests(path, name, status):
        return found["mote_requests_total", ("model", name), ("path", path), ("status", status)]

    assert requests("/v1/chat/completions", "demo", "200") == 1
    assert requests("/v1/messages", "demo", "200") == 1
    assert requests("/v1/chat/completions", "", "404") == 1
    assert requests("other", "", "404") == 1
    assert found["mote_generation_tokens_total", model] == 8
    assert found["mote_prompt_tokens_total", model] == 2 * prompt
    assert found["mote_cached_tokens_total", model] == prompt - 1
    assert found["mote_time_to_first_token_seconds_count", model] == 2
    assert (found["mote_requests_running", model], found["mote_model_loaded", model]) == (0, 1)


def test_each_request_has_a_line(server, caplog):
    with caplog.at_level(logging.INFO, "llm_server"):
        server.http().post("/v1/chat/completions", json=CHAT)
        server.http().get("/nowhere%0AGET%20/health")
        server.until(lambda _: "/nowhere" in caplog.text)
    lines = [record.getMessage() for record in caplog.records if record.name == "llm_server.requests"]
    assert re.fullmatch(
        r"POST /v1/chat/completions 200 \d+ ms demo prompt \d+ \(cached \d+\) reply 4 first \d+ ms", lines[0]
    )
    assert re.fullmatch(r"GET /nowhere\\nGET /health 404 \d+ ms", lines[1])


def test_the_description_is_of_what_is_there(server):
    document = server.http().get("/openapi.json").json()
    body = document["paths"]["/v1/chat/completions"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    schema = body | {"components": document["components"]}
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(CHAT | {"guided_choice": ["a"], "temperature": 1})
    assert not validator.is_valid(CHAT | {"temperature": 3})
    references = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
    assert references <= document["components"]["schemas"].keys()
    for path, methods in document["paths"].items():
        for method in methods:
            answer = server.http().request(method, path.replace("{name}", "demo").replace("{id}", "x"), json={})
            assert answer.status_code in (200, 400, 501) or "{id}" in path, (method, path, answer.text)


def test_the_page_of_it_loads_nothing(server):
    page = server.http().get("/docs")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert not re.search(r"<script|<link|src=|https?://", page.text)
    assert "POST /v1/messages" in page.text
    assert "guided_choice" in page.text


def test_a_key_guards_all_but_what_says_nothing(demo):
    with running(demo, api_key="secret") as server, server.http() as http:
        for path in ("/health", "/version", "/docs", "/openapi.json"):
            assert http.get(path).status_code == 200
        for path in ("/metrics", "/api/tags", "/v1/models", "/nowhere"):
            assert http.get(path).status_code == 401
        assert http.post("/tokenize", json={"prompt": "x"}).status_code == 401
        assert http.post("/api/chat", json={}).json() == {"error": http.get("/api/ps").json()["error"]}
        assert http.get("/v1/models", headers={"x-api-key": "secret"}).status_code == 200
        assert http.post("/v1/messages").json()["error"]["type"] == "authentication_error"


def test_leaving_while_a_body_is_sent_is_no_failure(server, caplog):
    with caplog.at_level(logging.INFO, "llm_server"):
        with socket.create_connection(server.address) as connection:
            head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            connection.sendall(head + b"Content-Length: 100\r\n\r\n{")
        server.until(lambda _: "/v1/completions" in caplog.text)
    assert "499" in caplog.text
    assert "Traceback" not in caplog.text
