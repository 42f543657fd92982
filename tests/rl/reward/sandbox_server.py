#!/usr/bin/env python3
"""SandboxFusion's /run_code on loopback, as far as Python goes: programs are run. Prints its port and serves until its stdin ends.

The path says how it behaves:
    /run_code   runs the program
    /pairs      as /run_code, but the first program begins when a second one has come
    /busy       504 to the first two requests of each program but "pass", then as /run_code
    /broken     SandboxError for programs that hold the word "trouble", else as /run_code
    /refused    400 for every program but "pass"
    /text       no JSON
    /other      JSON without a verdict
    /hang       never answers a program but "pass", and that one without running it
"""
import collections
import http.server
import json
import subprocess
import sys
import threading

seen = collections.Counter()
running = 0
most = 0
mutex = threading.Lock()
came = threading.Condition(mutex)
FINISHED = {"status": "Finished", "return_code": 0, "stdout": "", "stderr": "", "execution_time": 0.1}


def run(request):
    done = FINISHED
    try:
        compile(request["code"], "program", "exec")
    except SyntaxError as error:
        return {"status": "Failed", "message": "", "compile_result": {**done, "status": "Error", "stderr": str(error)}, "run_result": None}
    try:
        ran = subprocess.run([sys.executable, "-c", request["code"]], input=request["stdin"], capture_output=True, text=True, timeout=request["run_timeout"])
    except subprocess.TimeoutExpired:
        return {"status": "Failed", "message": "", "compile_result": None, "run_result": {**done, "status": "TimeLimitExceeded", "return_code": None}}
    status = "Success" if ran.returncode == 0 else "Failed"
    return {"status": status, "message": "", "compile_result": None, "run_result": {**done, "return_code": ran.returncode, "stdout": ran.stdout, "stderr": ran.stderr}}


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
        global running, most
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert request["language"] == "python" and request["memory_limit_MB"] > 0 and request["compile_timeout"] > 0
        real = request["code"].strip() != "pass"
        if self.path == "/text":
            return self.answer(200, "hello")
        if self.path == "/other":
            return self.answer(200, {"scores": []})
        if self.path == "/hang":
            if real:
                return threading.Event().wait()
            return self.answer(200, {"status": "Success", "message": "", "compile_result": None, "run_result": FINISHED})
        if real and self.path == "/refused":
            return self.answer(400, "no such language")
        if "trouble" in request["code"] and self.path == "/broken":
            return self.answer(200, {"status": "SandboxError", "message": "no room for it"})
        if real and self.path == "/busy":
            with mutex:
                seen[request["code"]] += 1
                turned_away = seen[request["code"]] <= 2
            if turned_away:
                return self.answer(504, "")
        with mutex:
            running += 1
            most = max(most, running)
            came.notify_all()
            if real and self.path == "/pairs":
                came.wait_for(lambda: most >= 2)
        verdict = run(request)
        with mutex:
            running -= 1
        if "most_at_once" in request["code"]:
            verdict["run_result"]["stdout"] = str(most)
        self.answer(200, verdict)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
