"""Questions to the process that owns an agent loop's process."""

import json
import socket
import unittest

from python_program import load


class LoopOwner(unittest.TestCase):
    def setUp(self):
        self.program = load("rl/agent/loop_owner.py")
        self.program.connection, ours = socket.socketpair()
        self.lines = ours.makefile("r")
        ours.close()
        self.addCleanup(self.lines.close)
        self.addCleanup(self.program.connection.close)

    def test_each_question_has_a_number_and_a_future(self):
        first = self.program.ask("encode", text="a")
        self.program.ask("decode", ids=[1])
        sent = [json.loads(self.lines.readline()) for _ in range(2)]
        self.assertEqual(sent[0], {"ask": 0, "kind": "encode", "text": "a"})
        self.assertEqual(sent[1], {"ask": 1, "kind": "decode", "ids": [1]})
        self.assertIs(self.program.asked[0], first)

    def test_numbers_of_other_libraries_are_plain(self):
        class Scalar:
            def item(self):
                return 2

        self.program.send({"value": Scalar(), "other": {1}.__class__})
        self.assertEqual(json.loads(self.lines.readline()), {"value": 2, "other": "<class 'set'>"})

    def test_an_error_is_raised(self):
        self.assertEqual(self.program.value_of({"value": 3}), 3)
        with self.assertRaisesRegex(RuntimeError, "too long"):
            self.program.value_of({"error": "too long"})


if __name__ == "__main__":
    unittest.main()
