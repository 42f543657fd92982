#!/usr/bin/env python3
"""A small hub on loopback, as far as models are fetched from one. Prints its port and serves until its stdin ends.

    small_hub.py FOLDER          FOLDER/org/name/FILE... or FOLDER/name/FILE... are the files of models

The first part of a path is how it behaves, so that one hub serves all tests: HF_ENDPOINT=http://127.0.0.1:PORT/cut, say.
    ok            as the real one: small files from itself, large ones (*.safetensors, *.bin, *.gguf) from a "CDN" at another address.
                  The CDN refuses requests that carry the token.
    tree          lists files page by page only
    token         wants "Bearer secret"
    gated         refuses everybody for the terms that were not accepted
    cut           ends the connection in the middle of a large file, the first two times
    no_range      the same, and ignores Range
    wrong         large files have a wrong byte; wrong_once: the first time
    longer        large files have a byte too many
    busy          429 with Retry-After: 0 to the first request for each thing; broken: 503
    later         429 with Retry-After: 9999
    down          503 always
    moved         sends org/old and gpt2 on to org/name, relatively
GET /log answers what was asked for: a JSON list of "METHOD /path range=... token".
"""
import collections
import hashlib
import http.server
import json
import pathlib
import sys
import threading
import urllib.parse

ROOT = pathlib.Path(sys.argv[1])
COMMIT = "0123456789abcdef0123456789abcdef01234567"
LARGE = (".safetensors", ".bin", ".gguf")
log = []
seen = collections.Counter()
mutex = threading.Lock()


def first_times(key, times=1):
    with mutex:
        seen[key] += 1
        return seen[key] <= times


class Hub(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def answer_json(self, value, **headers):
        self.answer(200, json.dumps(value).encode(), Content_Type="application/json", **headers)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if path == "/log":
            with mutex:
                lines = list(log)
            return self.answer_json(lines)
        token = self.headers.get("Authorization", "")
        with mutex:
            log.append(f"{self.command} {urllib.parse.unquote(path)} range={self.headers.get('Range', '')} {'token' if token else ''}".strip())
        kind, _, rest = path.lstrip("/").partition("/")
        rest = urllib.parse.unquote(rest)
        if kind == "down":
            return self.answer(503)
        if kind == "later":
            return self.answer(429, Retry_After="9999")
        if kind in ("busy", "broken") and first_times((kind, self.command, rest)):
            return self.answer(429, Retry_After="0") if kind == "busy" else self.answer(503)
        if kind == "gated":
            return self.answer(403, X_Error_Code="GatedRepo", X_Error_Message="Access to model is restricted")
        if kind == "token" and not rest.startswith("cdn/") and token != "Bearer secret":
            return self.answer(401, X_Error_Code="RepoNotFound")
        if rest.startswith("cdn/"):
            return self.answer(400, b"the token leaked") if token else self.serve_large(kind, ROOT / rest[4:])
        for old in ("org/old", "gpt2"):
            if kind == "moved" and old in rest:
                return self.answer(307, Location=self.path.replace(old, "org/name"))
        if rest.startswith("api/models/"):
            return self.serve_api(kind, rest[len("api/models/"):], query)
        return self.serve_file(kind, rest)

    def files(self, repo):
        folder = ROOT / repo
        return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()) if folder.is_dir() else None

    def serve_api(self, kind, rest, query):
        what = "revision" if "/revision/" in rest else "tree"
        repo, _, revision = rest.partition(f"/{what}/")
        files = self.files(repo)
        if files is None:
            return self.answer(404, X_Error_Code="RepoNotFound")
        if revision not in ("main", "v1", "refs/pr/3", COMMIT):
            return self.answer(404, X_Error_Code="RevisionNotFound")
        if what == "revision":
            siblings = [] if kind == "tree" else [{"rfilename": file} for file in files]
            return self.answer_json({"_id": "1", "id": repo, "private": False, "downloads": 0, "likes": 0, "tags": [], "sha": COMMIT, "siblings": siblings})
        entries = []
        for file in files:
            data = (ROOT / repo / file).read_bytes()
            entry = {"type": "file", "path": file, "size": len(data), "oid": self.blob_id(data)}
            if file.endswith(LARGE):
                entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
            entries.append(entry)
        if kind != "tree":
            return self.answer_json(entries)
        at = int(urllib.parse.parse_qs(query).get("cursor", ["0"])[0])  # one a page
        more = {} if at + 1 >= len(entries) else {"Link": f'<http://{self.headers["Host"]}{self.path.partition("?")[0]}?recursive=true&cursor={at + 1}>; rel="next"'}
        return self.answer_json(entries[at:at + 1], **more)

    @staticmethod
    def blob_id(data):
        return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()

    def serve_file(self, kind, rest):
        repo, resolve, rest = rest.partition("/resolve/")
        file = rest.partition("/")[2]
        path = ROOT / repo / file
        if not resolve or not path.is_file():
            return self.answer(404, X_Error_Code="EntryNotFound")
        if not file.endswith(LARGE):
            data = path.read_bytes()
            return self.answer(200, data, ETag=f'"{self.blob_id(data)}"', X_Repo_Commit=COMMIT)
        data = path.read_bytes()
        sha = hashlib.sha256(data).hexdigest()
        where = f"http://localhost:{self.server.server_port}/{kind}/cdn/{repo}/{file}"
        return self.answer(302, Location=where, X_Linked_ETag=f'"{sha}"', X_Linked_Size=str(len(data)), X_Repo_Commit=COMMIT)

    def serve_large(self, kind, path):
        data = bytearray(path.read_bytes())
        whole = len(data)
        if kind == "wrong" or (kind == "wrong_once" and first_times((kind, str(path)))):
            data[whole // 2] ^= 1
        if kind == "longer":
            data += b"!"
        asked = self.headers.get("Range", "")
        start = int(asked.removeprefix("bytes=").partition("-")[0]) if asked and kind != "no_range" else 0
        if start > 0 and start >= whole:
            return self.answer(416, Content_Range=f"bytes */{whole}")
        status = 206 if asked and kind != "no_range" else 200
        self.send_response(status)
        self.send_header("Content-Length", str(len(data) - start))
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.end_headers()
        if self.command == "HEAD":
            return
        if kind in ("cut", "no_range") and first_times((kind, str(path)), 2):
            self.wfile.write(data[start:start + (len(data) - start) // 2])
            self.close_connection = True
            return
        self.wfile.write(data[start:])


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):  # clients that hang up are part of the tests
        pass


def main():
    server = Server(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()


main()
