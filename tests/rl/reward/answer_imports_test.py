"""The names that answers to programming tasks take for granted."""

import unittest

from python_program import load


class AnswerImports(unittest.TestCase):
    def test_names(self):
        names = vars(load("rl/reward/answer_imports.py"))
        for name in ("List", "Optional", "defaultdict", "deque", "permutations", "lru_cache"):
            self.assertIn(name, names)
        for name in (
            "heappush",
            "bisect_left",
            "sqrt",
            "gcd",
            "math",
            "re",
            "string",
            "sys",
            "heapq",
        ):
            self.assertIn(name, names)


if __name__ == "__main__":
    unittest.main()
