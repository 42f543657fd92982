"""Tests of the program that asks a sampler class for the next rows."""

import unittest

from python_program import load


class Countdown:
    """Rows from the last to the first, and further back after each update."""

    def __init__(self, rows):
        self.rows, self.seen = rows, []

    def __iter__(self):
        return iter(range(self.rows - 1, -1, -1))

    def update(self, batch):
        self.seen.append((len(batch), list(batch.non_tensor_batch["index"])))

    def state_dict(self):
        return {"seen": len(self.seen)}

    def load_state_dict(self, state):
        self.seen = [None] * state["seen"]


class SamplerProgram(unittest.TestCase):
    def setUp(self):
        self.program = load("rl/data/python_prelude.py", "rl/data/sampler_program.py")

    def order(self, sampler, rows=5):
        return self.program.Order(sampler, rows)

    def test_batches_of_epochs(self):
        order = self.order(Countdown(5))
        self.assertEqual(order.answer({"next": [2]})["rows"], [4, 3])
        self.assertEqual(order.answer({"next": [2]})["rows"], [2, 1])
        answer = order.answer({"next": [2]})  # what is left over fills no batch
        self.assertEqual((answer["rows"], answer["epoch"], answer["offset"]), ([4, 3], 1, 2))

    def test_outcomes_reach_the_sampler(self):
        sampler = Countdown(5)
        answer = self.order(sampler).answer({"update": [[[1, 0.5, 10], [2, 1.0, 20]]]})
        self.assertEqual((answer, sampler.seen), ({"state": {"seen": 1}}, [(2, [1, 2])]))

    def test_a_position_is_resumed(self):
        order, sampler = self.order(Countdown(5)), Countdown(5)
        order.answer({"next": [3]})
        state = order.answer({"update": [[[1, 0.5, 10]]]})["state"]
        resumed = self.order(sampler)
        self.assertEqual(resumed.answer({"resume": [0, 3, state]}), {"replays_updates": True})
        self.assertEqual(len(sampler.seen), 1)
        self.assertEqual(resumed.answer({"next": [2]})["rows"], order.answer({"next": [2]})["rows"])

    def test_wrong_rows_are_refused(self):
        with self.assertRaisesRegex(LookupError, "gave row 5, and there are 5"):
            self.order([5]).answer({"next": [1]})
        with self.assertRaisesRegex(LookupError, "has 1 rows, which is no batch of 2"):
            self.order([0]).answer({"next": [2]})


if __name__ == "__main__":
    unittest.main()
