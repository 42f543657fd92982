"""Rows of a dataset class as lines."""

import io
import json
import sys
import unittest
from unittest import mock

from python_program import load


class Rows:
    def __init__(self, data_files, config):
        self.rows = [{"raw_prompt": f"{file} {config['key']}", "none": None} for file in data_files]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


class DatasetProgram(unittest.TestCase):
    def lines(self, made, **setup):
        program = load("rl/data/python_prelude.py", "rl/data/dataset_program.py")
        program.told, program.load_class = io.StringIO(), lambda path, name: made
        program.tokenizer_of = lambda model: None
        setup = {"path": "p", "name": "n", "model": "m", "config": {"key": "v"}, **setup}
        with mock.patch.object(sys, "argv", ["-c", json.dumps({"max_samples": -1, **setup})]):
            program.main()
        return [json.loads(line) for line in program.told.getvalue().splitlines()]

    def test_rows_then_the_end(self):
        self.assertEqual(
            self.lines(Rows, files=["a", "b"]),
            [{"prompt": "a v"}, {"prompt": "b v"}, {"end": True}],
        )

    def test_a_limit(self):
        lines = self.lines(Rows, files=["a", "b"], max_samples=1)
        self.assertEqual(lines, [{"prompt": "a v"}, {"end": True}])

    def test_iterators_that_take_all_arguments(self):
        def made(**given):
            yield {"prompt": sorted(given)}

        names = ["config", "data_files", "max_samples", "processor", "tokenizer"]
        self.assertEqual(self.lines(made, files=[]), [{"prompt": names}, {"end": True}])

    def test_a_row_that_is_none(self):
        with self.assertRaisesRegex(TypeError, "row 1 is a int, not a dict"):
            self.lines(lambda **_: iter([5]), files=[])


if __name__ == "__main__":
    unittest.main()
