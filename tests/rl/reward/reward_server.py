#!/usr/bin/env python3
"""A reward server on loopback. Prints its port and serves until its stdin ends.

The path says how it behaves:
    /length   scores by the response's length; response "dict" gives {"score": 0.5, "acc": 1}, "null" gives null, "nan" NaN (which is how Python writes it)
    /busy     503 to the first two requests that have samples, then as /length
    /down     503 always
    /token    wants "Bearer secret"
    /short    one score too few
    /deep     a list in a list in a list ... to a sample, "[]" to none
    /text     no JSON
    /hang     never answers requests that have samples
"""
import http.server
import json
import sys
import threading

seen = 0
mutex = threading.Lock()


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, value):
        body = value.encode() if isinstance(value, str) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        global seen
        samples = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["samples"]
        if self.path == "/missing":
            return self.answer(404, "")
        if self.path == "/token" and self.headers.get("Authorization") != "Bearer secret":
            return self.answer(401, "")
        if self.path == "/hang" and samples:
            return threading.Event().wait()
        if self.path == "/down" and samples:
            return self.answer(503, "no more")
        if self.path == "/busy" and samples:
            with mutex:
                seen += 1
                turned_away = seen <= 2
            if turned_away:
                return self.answer(503, "")
        if self.path == "/text":
            return self.answer(200, "hello")
        if self.path == "/deep":
            depth = 200_000 if samples else 1
            return self.answer(200, '{"scores": ' + "[" * depth + "]" * depth + "}")
        scores = [{"dict": {"score": 0.5, "acc": 1}, "null": None, "nan": {"score": float("nan"), "note": "NaN, \"Infinity\""}}.get(sample["solution_str"], len(sample["solution_str"])) for sample in samples]
        self.answer(200, {"scores": scores[1:] if self.path == "/short" else scores})


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
