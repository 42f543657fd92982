"""The protocol of Python workers, with a real process on the other end of the descriptors."""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import unittest

from python_program import SOURCES, load

SERVER = (SOURCES / "rl/reward/python_server.py").read_text()
PROGRAM = """
def load(setup):
    return (None, "no such thing") if setup.get("broken") else (setup["offset"], "")


def handle(setup, loaded, request):
    if "pid" in request:
        return {"pid": os.getpid()}
    return {"sum": loaded + request["value"]}


serve(load, handle)
"""


class Worker:
    """A process that serves PROGRAM."""

    def __init__(self, **setup):
        ours, theirs = socket.socketpair()
        self.alive, life = socket.socketpair()

        given = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs, life)]
        moves = "3<&{0} 4<&{1} {0}<&- {1}<&-".format(*given)
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$0" -c "$1" {moves}', sys.executable, SERVER + PROGRAM],
            pass_fds=given,
            start_new_session=True,
        )
        for end in given:
            os.close(end)
        theirs.close()
        life.close()
        self.socket = ours
        self.lines = ours.makefile("r")
        self.send({"copies": False, "memory_bytes": 0, "offset": 10, **setup})

    def send(self, message):
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def receive(self):
        return json.loads(self.lines.readline())

    def end(self):
        self.lines.close()
        self.socket.close()
        self.process.wait(timeout=30)
        self.alive.close()


class Serve(unittest.TestCase):
    def test_answers_requests_by_number(self):
        worker = Worker()
        self.assertEqual(worker.receive(), {"ready": True, "copies": False})
        worker.send({"id": 7, "value": 5})
        self.assertEqual(worker.receive(), {"sum": 15, "id": 7})
        worker.end()
        self.assertEqual(worker.process.returncode, 0)

    def test_an_exception_is_an_answer(self):
        worker = Worker()
        worker.receive()
        worker.send({"id": 1})
        answer = worker.receive()
        self.assertEqual(answer["error"], "KeyError: 'value'")
        self.assertIn("handle", answer["traceback"])
        worker.send({"id": 2, "value": 1})
        self.assertEqual(worker.receive()["sum"], 11)
        worker.end()

    def test_says_what_is_wrong_with_what_is_loaded(self):
        worker = Worker(broken=True)
        self.assertEqual(worker.receive(), {"fatal": "no such thing"})
        worker.end()

    def test_the_keeper_ends_as_its_child_did(self):
        worker = Worker()
        worker.receive()
        worker.send({"id": 1, "pid": True})
        child = worker.receive()["pid"]
        self.assertNotEqual(child, worker.process.pid)
        os.kill(child, signal.SIGKILL)
        worker.end()
        self.assertEqual(worker.process.returncode, -signal.SIGKILL)

    def test_copies_answer_on_their_own_descriptors(self):
        worker = Worker(copies=True)
        if not worker.receive()["copies"]:
            worker.end()
            self.skipTest("this Python cannot copy its process")
        ours, theirs = socket.socketpair()
        alive, life = socket.socketpair()
        with open(os.devnull, "w") as output:
            socket.send_fds(
                worker.socket, [b"c"], [theirs.fileno(), life.fileno(), output.fileno()]
            )
        theirs.close()
        life.close()
        self.assertGreater(worker.receive()["pid"], 0)
        with ours.makefile("r") as lines:
            self.assertEqual(json.loads(lines.readline()), {"ready": True})
            ours.sendall(b'{"id": 3, "value": 1}\n')
            self.assertEqual(json.loads(lines.readline()), {"sum": 11, "id": 3})
        ours.close()
        worker.end()
        alive.close()


class Parts(unittest.TestCase):
    def test_a_trace_has_the_end_of_the_traceback(self):
        server = load("rl/reward/python_server.py")
        try:
            raise ValueError("x" * 5000)
        except ValueError:
            self.assertEqual(len(server.trace()), 4000)

    def test_copies_draw_other_random_numbers(self):
        import random

        server = load("rl/reward/python_server.py")
        random.seed(1)
        first = random.random()
        random.seed(1)
        server.forget_chance()
        self.assertNotEqual(random.random(), first)


if __name__ == "__main__":
    unittest.main()
