"""A hub on this machine: what huggingface_hub asks of the real one, with the faults that tests want."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "c" * 40


@dataclass
class FakeRepository:
    """files: path -> content   lfs: whether contents have sha256 hashes, or git's   refusal: status, X-Error-Code"""

    files: dict[str, bytes]
    commit: str = COMMIT
    license: str = "apache-2.0"
    config: dict | None = None
    num_parameters: int = 0
    gguf: dict | None = None
    lfs: bool = True
    revisions: tuple[str, ...] = ("main",)
    refusal: tuple[int, str] | None = None
    private_token: str = ""


@dataclass
class FakeHub:
    """Contents and faults. `cuts`: after how many bytes of an answer each next download breaks off."""

    url: str
    repositories: dict[str, FakeRepository] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)
    etag: str = '"one"'
    damage: bool = False
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    uploads: dict[str, bytes] = field(default_factory=dict)  # LFS objects by sha256
    created: list[dict] = field(default_factory=list)

    def downloads(self) -> list[dict[str, str]]:
        """Headers of the requests for contents."""
        return [headers for method, path, headers in self.requests if method == "GET" and path.startswith("/cdn/")]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: FakeHub

    def log_message(self, *arguments: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._handle("HEAD")

    def do_GET(self) -> None:
        self._handle("GET")

    def do_POST(self) -> None:
        self._handle("POST")

    def do_PUT(self) -> None:
        self._handle("PUT")

    def _handle(self, method: str) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.requests.append((method, path, {key.lower(): value for key, value in self.headers.items()}))
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        for pattern, name in ROUTES:
            match = re.fullmatch(pattern, path)
            if match is not None:
                getattr(self, name)(*match.groups())
                return
        self._json(404, {"error": f"no route {method} {path}"})

    def create(self) -> None:
        asked = json.loads(self.body)
        self.hub.created.append(asked)
        repo = f"{asked['organization']}/{asked['name']}"
        if not self.headers.get("Authorization"):
            self._json(401, {"error": "Invalid username or password."})
            return
        if repo in self.hub.repositories:
            self._json(409, {"error": "exists", "url": f"{self.hub.url}/{repo}"})
            return
        self.hub.repositories[repo] = FakeRepository({})
        self._json(200, {"url": f"{self.hub.url}/{repo}"})

    def search(self) -> None:
        query = {key: values[0].lower() for key, values in parse_qs(urlsplit(self.path).query).items()}
        found = [
            repo
            for repo in self.hub.repositories
            if repo.lower().startswith(query.get("author", "") + "/" if "author" in query else "")
            and query.get("search", "") in repo.lower()
        ]
        self._json(200, [{"id": repo, "modelId": repo} for repo in found])

    def info(self, repo: str, revision: str | None) -> None:
        found = self._repository(repo, revision)
        if found is None:
            return
        siblings = [{"rfilename": path, **_hashes(data, found.lfs)} for path, data in found.files.items()]
        answer = {"id": repo, "sha": found.commit, "siblings": siblings, "cardData": {"license": found.license}}
        answer["config"] = found.config or {}
        if found.num_parameters:
            answer["safetensors"] = {"parameters": {"BF16": found.num_parameters}, "total": found.num_parameters}
        if found.gguf:
            answer["gguf"] = found.gguf
        self._json(200, answer)

    def resolve(self, repo: str, revision: str, path: str) -> None:
        found = self._repository(repo, revision)
        if found is None:
            return
        if path not in found.files:
            self._json(404, {"error": "no such file"}, {"X-Error-Code": "EntryNotFound"})
            return
        data = found.files[path]
        headers = {"X-Repo-Commit": found.commit, "X-Linked-Size": str(len(data)), "X-Linked-Etag": f'"{_sha(data)}"'}
        elsewhere = self.hub.url.replace("127.0.0.1", "localhost")  # another host, as that of the real one
        self._answer(307, b"", headers | {"Location": f"{elsewhere}/cdn/{repo}/{path}"})

    def content(self, repo: str, path: str) -> None:
        data = self.hub.repositories[repo].files[path]
        if self.hub.damage:
            data = data[:-1000] + bytes(1000)
        status, headers = 200, {"ETag": self.hub.etag}
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if wanted is not None and self.headers.get("If-Range", self.hub.etag) == self.hub.etag:
            start = int(wanted[1])
            if start >= len(data):
                self._answer(416, b"", {"Content-Range": f"bytes */{len(data)}"})
                return
            status, headers["Content-Range"] = 206, f"bytes {start}-{len(data) - 1}/{len(data)}"
            data = data[start:]
        cut = self.hub.cuts.pop(0) if self.hub.cuts and self.command == "GET" else None
        self._answer(status, data, headers, cut)

    def validate(self) -> None:
        self._json(200, {"errors": [], "warnings": []})

    def preupload(self, repo: str) -> None:
        files = json.loads(self.body)["files"]
        answer = [
            {"path": f["path"], "uploadMode": "lfs" if f["path"].endswith(".mote") else "regular", "oid": None,
             "shouldIgnore": False} for f in files
        ]  # fmt: skip
        self._json(200, {"files": answer})

    def lfs_batch(self, repo: str) -> None:
        asked = json.loads(self.body)
        objects = [
            {"oid": o["oid"], "size": o["size"], "actions": {"upload": {"href": f"{self.hub.url}/upload/{o['oid']}"}}}
            for o in asked["objects"]
        ]
        self._json(200, {"transfer": "basic", "objects": objects})

    def upload(self, oid: str) -> None:
        self.hub.uploads[oid] = self.body
        self._answer(200, b"")

    def commit(self, repo: str) -> None:
        for line in self.body.decode().splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "file":
                self.hub.repositories[repo].files[value["path"]] = base64.b64decode(value["content"])
            elif entry["key"] == "lfsFile":
                self.hub.repositories[repo].files[value["path"]] = self.hub.uploads[value["oid"]]
        self._json(200, {"commitUrl": f"{self.hub.url}/{repo}/commit/{COMMIT}", "commitOid": COMMIT, "success": True})

    def _repository(self, repo: str, revision: str | None) -> FakeRepository | None:
        found = self.hub.repositories.get(repo)
        sent = self.headers.get("Authorization", "")
        if found is None or (found.private_token and sent != f"Bearer {found.private_token}"):
            self._json(401, {"error": "Invalid username or password."}, {"X-Error-Code": "RepoNotFound"})
            return None
        if found.refusal is not None:
            self._json(found.refusal[0], {"error": "refused"}, {"X-Error-Code": found.refusal[1]})
            return None
        if revision not in (None, found.commit, *found.revisions):
            self._json(404, {"error": "no revision"}, {"X-Error-Code": "RevisionNotFound"})
            return None
        return found

    def _json(self, status: int, value: object, headers: dict[str, str] | None = None) -> None:
        self._answer(status, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})})

    def _answer(self, status: int, data: bytes, headers: dict[str, str] | None = None, cut: int | None = None) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(data if cut is None else data[:cut])
        if cut is not None:
            self.close_connection = True


ROUTES = (
    (r"/api/repos/create", "create"),
    (r"/api/validate-yaml", "validate"),
    (r"/api/models", "search"),
    (r"/api/models/([^/]+/[^/]+)/preupload/main", "preupload"),
    (r"/api/models/([^/]+/[^/]+)/commit/main", "commit"),
    (r"/api/models/([^/]+/[^/]+)(?:/revision/(.+))?", "info"),
    (r"/cdn/([^/]+/[^/]+)/(.+)", "content"),
    (r"/upload/(\w+)", "upload"),
    (r"/([^/]+/[^/]+)\.git/info/lfs/objects/batch", "lfs_batch"),
    (r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", "resolve"),
)


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _hashes(data: bytes, lfs: bool) -> dict:
    blob = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
    fields: dict = {"size": len(data), "blobId": blob}
    return fields | ({"lfs": {"sha256": _sha(data), "size": len(data), "pointerSize": 130}} if lfs else {})


class _Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address) -> None:
        """A client may hang up before it has read an answer that it does not want."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def start() -> tuple[FakeHub, ThreadingHTTPServer]:
    """Starts a hub; `shutdown` and `server_close` end it."""
    hub = FakeHub("")
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    return hub, server
