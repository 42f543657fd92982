"""Agent loops by name: how they are found, made and run."""

import asyncio
import math
import os
import sys
import tempfile
import unittest

from python_program import load

PARTS = (
    "rl/reward/python_server.py",
    "rl/agent/tool_modules.py",
    "rl/agent/loop_owner.py",
    "rl/agent/loop_modules.py",
    "rl/agent/loop_program.py",
)
LOOPS = '''
class Echo:
    """Takes by name what it needs."""

    initialized = 0

    @classmethod
    def init_class(cls, config):
        cls.initialized += 1

    def __init__(self, trainer_config, tokenizer, suffix=()):
        self.suffix = list(suffix)

    async def run(self, sampling_params, messages, score):
        if score is None:
            raise ValueError("no score")
        ids = [len(messages)] + self.suffix
        return Output(ids, score)


class Output:
    def __init__(self, ids, score):
        self.prompt_ids, self.response_ids, self.response_mask = [1], ids, [1] * len(ids)
        self.reward_score, self.num_turns, self.metrics, self.extra_fields = score, 2, None, None


def by_name(tokenizer):
    return {"given": Echo}


def broken():
    return {"given": 3}
'''


class LoopProgram(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        with open(os.path.join(folder.name, "echo_loops.py"), "w") as file:
            file.write(LOOPS)
        sys.path.append(folder.name)
        self.addCleanup(sys.path.remove, folder.name)
        self.addCleanup(sys.modules.pop, "echo_loops", None)
        self.program = load(*PARTS)
        self.sent = []
        self.program.send = self.sent.append

    def loops(self, *entries, loader=None):
        return self.program.Loops(
            {"config": {"data": {}}, "tokenizer": {}, "loops": entries, "loader": loader}
        )

    def run_loop(self, loops, name, score):
        row = {"raw_prompt": [{"content": "a"}], "score": score, "unused": 1}
        message = {"run": 4, "agent": name, "row": row, "sampling_params": {}}
        asyncio.run(self.program.run_loop(loops, message))
        return self.sent[-1]

    def test_a_loop_is_given_what_it_takes(self):
        loops = self.loops({"name": "echo", "_target_": "echo_loops.Echo", "suffix": [9]})
        done = self.run_loop(loops, "echo", 0.5)
        self.assertEqual((done["done"], done["response_ids"]), (4, [1, 9]))
        self.assertEqual(
            (done["reward_score"], done["metrics"], done["extra_fields"]), (0.5, {}, {})
        )
        self.run_loop(loops, "echo", 1)
        self.assertEqual(sys.modules["echo_loops"].Echo.initialized, 1)

    def test_a_failed_loop_is_an_answer(self):
        failed = self.run_loop(self.loops({"name": "e", "_target_": "echo_loops.Echo"}), "e", None)
        self.assertEqual((failed["failed"], failed["why"]), (4, "ValueError: no score"))
        failed = self.run_loop(
            self.loops({"name": "e", "_target_": "echo_loops.Echo"}), "e", math.nan
        )
        self.assertIn("not a finite number", failed["why"])

    def test_loops_that_a_function_gives(self):
        loops = self.loops(loader="echo_loops.by_name")
        self.assertEqual(list(loops.entries), ["single_turn_agent", "given"])
        loops = self.loops(loader="echo_loops.Echo")  # one class for every name
        self.assertEqual(self.run_loop(loops, "any", 1)["done"], 4)
        with self.assertRaisesRegex(TypeError, "echo_loops.broken gave 3, not a class"):
            self.loops(loader="echo_loops.broken")

    def test_what_cannot_be_loaded(self):
        with self.assertRaisesRegex(RuntimeError, "'e' .Echo. cannot be loaded"):
            self.loops({"name": "e", "_target_": "Echo"})


if __name__ == "__main__":
    unittest.main()
