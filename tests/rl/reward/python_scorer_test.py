"""Functions of a user's file: how they are found, called and judged."""

import asyncio
import math
import os
import tempfile
import unittest
import warnings

from python_program import load


def scorer():
    return load("rl/reward/python_server.py", "rl/reward/python_scorer.py")


class Judge(unittest.TestCase):
    def test_numbers(self):
        judge = scorer().judge
        self.assertEqual(judge(0.5), {"score": 0.5, "extra": {}})
        self.assertEqual(judge(True), {"score": 1.0, "extra": {}})
        self.assertEqual(judge((2, "ignored")), {"score": 2.0, "extra": {}})

    def test_a_dictionary_has_further_numbers(self):
        judged = scorer().judge({"score": 1, "acc": True, "text": "x", "bad": math.nan})
        self.assertEqual(judged, {"score": 1.0, "extra": {"acc": 1.0}})

    def test_what_is_no_score(self):
        judge = scorer().judge
        self.assertIn("returned 'x' of type str", judge("x")["invalid"])
        self.assertIn("without 'score'; it has 'acc'", judge({"acc": 1})["invalid"])
        self.assertIn("not a finite number", judge(math.inf)["invalid"])
        self.assertIn("not a number", judge(10**400)["invalid"])


class Call(unittest.TestCase):
    def test_plain_and_asynchronous_functions(self):
        async def later(value):
            await asyncio.sleep(0)
            return value

        module = scorer()
        self.assertEqual(module.call(lambda value: value + 1, {"value": 1}), 2)
        self.assertEqual(module.call(later, {"value": 3}), 3)
        module.loop.close()

    def test_a_function_that_makes_tasks_is_called_within_the_loop(self):
        async def later():
            return 4

        module = scorer()
        with warnings.catch_warnings():  # of the coroutine that the first try made
            warnings.simplefilter("ignore")
            self.assertEqual(module.call(lambda: asyncio.create_task(later()), {}), 4)
        module.loop.close()


class Load(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "score.py")

    def load(self, text, name="compute_score"):
        with open(self.path, "w") as file:
            file.write(text)
        return scorer().load({"path": self.path, "name": name})

    def test_the_named_function(self):
        function, problem = self.load("def compute_score(**given):\n    return len(given)\n")
        self.assertEqual((function(a=1), problem), (1, ""))

    def test_problems(self):
        self.assertEqual(
            scorer().load({"path": "/no/file.py", "name": "f"}),
            (None, "there is no file /no/file.py"),
        )
        self.assertIn("ZeroDivisionError", self.load("1 / 0")[1])
        problem = self.load("def other():\n    pass\n")[1]
        self.assertTrue(problem.endswith("has no function 'compute_score'; it has other"), problem)

    def test_requests(self):
        function, _ = self.load(
            "def compute_score(data_source, solution_str, **more):\n    return 2\n"
        )
        request = dict.fromkeys(("data_source", "solution_str", "ground_truth", "extra_info"))
        setup = {"lists": False, "kwargs": {}}
        self.assertEqual(scorer().score(setup, function, request), {"score": 2.0, "extra": {}})
        scored = scorer().score(
            {"lists": True, "kwargs": {}},
            lambda solution_strs, **_: [5] * len(solution_strs),
            request,
        )
        self.assertEqual(scored["score"], 5.0)
        scored = scorer().score({"lists": True, "kwargs": {}}, lambda **_: 1, request)
        self.assertIn("not a list of one score", scored["invalid"])


if __name__ == "__main__":
    unittest.main()
