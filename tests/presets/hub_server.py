"""A small Hugging Face hub on this machine, for tests.

`HubServer` serves folders as model repositories and speaks as much of the hub's protocol as
`huggingface_hub.snapshot_download` needs: the repository's info, its file tree, and its files, with
ETags. Tests can make it fail.

    with HubServer({"owner/name": folder}) as hub:
        hub.use(monkeypatch, cache=tmp_path / "cache")
        TextClassifier.from_preset("hf://owner/name")
"""

import contextlib
import hashlib
import http.server
import json
import pathlib
import re
import threading
import urllib.parse


class HubServer:
    """Serves folders as the repositories of a Hugging Face hub in a thread.

    Attributes:
        url: its address.
        repositories: dict from `"owner/name"`, or `"owner/name@revision"` for a branch or tag
            other than `main`, to the folder it serves. Changes take effect at once.
        gated: set of `"owner/name"` whose files need a consent that nobody has given.
        requests: list of `"METHOD /path"`, in order of arrival.
    """

    def __init__(self, repositories):
        self.repositories = dict(repositories)
        self.gated = set()
        self.requests = []
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.hub = self
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._running = False

    def __enter__(self):
        self._thread.start()
        self._running = True
        return self

    def __exit__(self, *exception):
        self.stop()

    def stop(self):
        """Goes offline: further connections are refused."""
        if self._running:
            self._running = False
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()

    def use(self, monkeypatch, cache) -> None:
        """Makes `huggingface_hub`, which reads its environment at import, use this hub."""
        from huggingface_hub import constants

        template = self.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "ENDPOINT", self.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        # Versions before 1.0 keep a copy where they use it.
        used = "huggingface_hub.file_download.HUGGINGFACE_CO_URL_TEMPLATE"
        monkeypatch.setattr(used, template, raising=False)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def commit(self, repository: str) -> str:
        """Returns the commit of a repository: it changes whenever one of its files does."""
        digest = hashlib.sha1(repository.encode())
        for path in _files(self.repositories[repository]):
            digest.update(path.encode() + _content(self.repositories[repository], path))
        return digest.hexdigest()

    def find(self, repository: str, revision: str) -> str | None:
        """Returns the key in `repositories` of a repository at a branch, tag or commit."""
        for key in self.repositories:
            name, _, branch = key.partition("@")
            if name == repository and revision in (branch or "main", self.commit(key)):
                return key
        return None


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers one request over HTTP/1.0, which has one connection per request."""

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        hub = self.server.hub
        address = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(address.path)
        hub.requests.append(f"{self.command} {path}")
        if match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/([^/]+)", path):
            self._with_repository(match[1], match[2], self._send_tree)
        elif match := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/(.+))?", path):
            self._with_repository(match[1], match[2] or "main", self._send_info)
        elif match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            self._with_repository(match[1], match[2], self._resolve, match[3])
        else:
            self._send_error(404, "EntryNotFound")

    def _with_repository(self, name, revision, answer, *path):
        hub = self.server.hub
        if repository := hub.find(name, revision):
            answer(repository, *path)
        elif any(key.partition("@")[0] == name for key in hub.repositories):
            self._send_error(404, "RevisionNotFound")
        else:
            self._send_error(404, "RepoNotFound")

    def _send_info(self, repository):
        hub = self.server.hub
        name = repository.partition("@")[0]
        info = {"id": name, "modelId": name, "sha": hub.commit(repository), "private": False}
        info["gated"] = "manual" if name in hub.gated else False
        files = _files(hub.repositories[repository])
        self._send_json({**info, "siblings": [{"rfilename": path} for path in files]})

    def _send_tree(self, repository):
        folder = self.server.hub.repositories[repository]
        entries = []
        for path in _files(folder):
            content = _content(folder, path)
            entry = {"type": "file", "path": path, "size": len(content)}
            entry["oid"] = hashlib.sha1(content).hexdigest()
            entries.append(entry)
        self._send_json(entries)

    def _resolve(self, repository, path):
        """Sends a file, or why it cannot be had."""
        hub = self.server.hub
        if repository.partition("@")[0] in hub.gated:
            self._send_error(401, "GatedRepo")
        elif path not in _files(hub.repositories[repository]):
            self._send_error(404, "EntryNotFound", {"X-Repo-Commit": hub.commit(repository)})
        else:
            content = _content(hub.repositories[repository], path)
            digest = hashlib.sha256(content).hexdigest()
            headers = {"X-Repo-Commit": hub.commit(repository), "ETag": f'"{digest}"'}
            self._send(200, content, headers)

    def _send_json(self, value):
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _send_error(self, status, code, headers=None):
        self._send(status, b"", {"X-Error-Code": code, "X-Error-Message": code} | (headers or {}))

    def _send(self, status, body, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            with contextlib.suppress(ConnectionError):  # The client may hang up first.
                self.wfile.write(body)

    def log_message(self, *arguments):
        """Prints nothing. `HubServer.requests` has the requests."""


def _files(folder) -> list[str]:
    """Returns the paths of a repository's files with `/` between folders."""
    files = filter(pathlib.Path.is_file, pathlib.Path(folder).rglob("*"))
    return sorted(path.relative_to(folder).as_posix() for path in files)


def _content(folder, path) -> bytes:
    return (pathlib.Path(folder) / path).read_bytes()
