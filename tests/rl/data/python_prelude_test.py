"""Tests of the common beginning of programs that read data."""

import os
import sys
import tempfile
import unittest

from python_program import load


class Prelude(unittest.TestCase):
    def setUp(self):
        self.program = load("rl/data/python_prelude.py")

    def test_plain_values(self):
        class Array:
            def tolist(self):
                return [1, 2]

        plain = self.program.plain
        self.assertEqual(plain({1: (None, True, "x", Array())}), {"1": [None, True, "x", [1, 2]]})
        self.assertIsNone(plain(object()))

    def test_sections_are_read_by_attribute(self):
        section = self.program.Section.of({"a": {"b": [{"c": 1}]}})
        self.assertEqual(section.a.b[0].c, 1)
        with self.assertRaises(AttributeError):
            section.missing

    def test_classes_of_files(self):
        path_before = list(sys.path)
        self.addCleanup(lambda: sys.path.__setitem__(slice(None), path_before))
        self.addCleanup(sys.modules.pop, "custom_module", None)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.py")
            with open(path, "w") as file:
                file.write("class Rows:\n    size = 3\n")
            self.assertEqual(self.program.load_class(path, "Rows").size, 3)
            with self.assertRaisesRegex(LookupError, "has no class 'Other'; it has Rows"):
                self.program.load_class(path, "Other")

    def test_reasons_of_a_users_exception_have_a_traceback(self):
        try:
            raise LookupError("a file's")
        except LookupError as error:
            self.assertIn("Traceback", self.program.reasons(error))


if __name__ == "__main__":
    unittest.main()
