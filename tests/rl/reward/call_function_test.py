"""The program that a sandbox is sent: imports, an answer, the call of its function."""

import subprocess
import sys
import unittest

from python_program import SOURCES

IMPORTS = (SOURCES / "rl/reward/answer_imports.py").read_text()
CALL = (SOURCES / "rl/reward/call_function.py").read_text()


def run(answer, name, *lines):
    program = f'{IMPORTS}{answer}\n\n\n_NAME = "{name}"\n{CALL}'
    done = subprocess.run(
        [sys.executable, "-c", program], input="\n".join(lines), capture_output=True, text=True
    )
    return done.stdout.removesuffix("\n") if done.returncode == 0 else done.stderr


class CallFunction(unittest.TestCase):
    def test_arguments_are_lines_of_json(self):
        self.assertEqual(run("def f(a, b): return a[0] + b", "f", "[1, 2]", "3"), "4")
        self.assertEqual(run("def f(): return 'text'", "f"), "text")

    def test_results_that_are_no_text_or_number_are_json(self):
        self.assertEqual(
            run("def f(a): return a", "f", '{"k": [null, true]}'), '{"k": [null, true]}'
        )
        self.assertEqual(run("def f(): return True", "f"), "true")
        self.assertEqual(run("def f(): return 1.5", "f"), "1.5")

    def test_a_method_of_solution(self):
        answer = "class Solution:\n    def twice(self, x: int) -> int:\n        return 2 * x"
        self.assertEqual(run(answer, "twice", "4"), "8")

    def test_a_missing_function_is_an_error(self):
        self.assertIn("NameError", run("def g(): pass", "f"))


if __name__ == "__main__":
    unittest.main()
