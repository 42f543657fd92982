"""Stand-ins for verl's agent loops, with an owner that answers at once."""

import asyncio
import concurrent.futures
import unittest

from python_program import load

PARTS = ("rl/agent/tool_modules.py", "rl/agent/loop_owner.py", "rl/agent/loop_modules.py")


class LoopModules(unittest.TestCase):
    def setUp(self):
        self.modules = load(*PARTS)
        self.asked = []
        self.answers = {
            "encode": lambda text, **_: [ord(one) for one in text],
            "decode": lambda ids, **_: "".join(map(chr, ids)),
            "token_id": lambda text: len(text),
            "template": lambda messages, **_: "".join(one["content"] for one in messages),
            "between": lambda messages, **_: [len(messages)],
            "generate": lambda **_: {
                "ids": [7, 8],
                "logprobs": [-1.0, -2.0],
                "stop_reason": "stop",
            },
            "calls": lambda **_: {"content": "c", "calls": [{"name": "f", "arguments": "{}"}]},
        }

        def ask(kind, **values):
            self.asked.append((kind, values))
            future = concurrent.futures.Future()
            future.set_result({"value": self.answers[kind](**values)})
            return future

        self.modules.ask = ask
        self.tokenizer = self.modules.Tokenizer({"eos_token_id": 2, "vocab_size": 300})
        self.config = self.modules.boxed(
            {"data": {}, "actor_rollout_ref": {"rollout": {"prompt_length": 3}}}
        )

    def test_configurations_are_read_by_attribute(self):
        self.assertEqual(self.config.actor_rollout_ref.rollout.prompt_length, 3)
        with self.assertRaisesRegex(AttributeError, "has no 'critic' here"):
            self.config.critic

    def test_the_tokenizer_is_the_owners(self):
        self.assertEqual(self.tokenizer.encode("ab"), [97, 98])
        self.assertEqual(self.tokenizer("ab").attention_mask, [1, 1])
        self.assertEqual(self.tokenizer(["a", "bc"]).input_ids, [[97], [98, 99]])
        self.assertEqual(self.tokenizer.batch_decode([[97], [98]]), ["a", "b"])
        self.assertEqual(self.tokenizer.convert_tokens_to_ids(["x", "yz"]), [1, 2])
        self.assertEqual((self.tokenizer.eos_token_id, len(self.tokenizer)), (2, 300))
        messages = [{"role": "user", "content": "hi"}]
        self.assertEqual(self.tokenizer.apply_chat_template(messages, tokenize=False), "hi")
        self.assertEqual(self.tokenizer.apply_chat_template(messages), [104, 105])
        with self.assertRaisesRegex(AttributeError, "AutoTokenizer"):
            self.tokenizer.pad
        with self.assertRaises(TypeError):
            self.tokenizer.apply_chat_template(messages, return_tensors="pt")

    def test_generated_ids_are_a_list_with_names(self):
        async def generate():
            manager = self.modules.AsyncLLMServerManager(run=5)
            await manager.generate(prompt_ids=[1], sampling_params=None)
            return await manager.generate(prompt_ids=[1, 2], sampling_params={"top_p": 0.5})

        output = asyncio.run(generate())
        self.assertEqual((list(output), output.token_ids), ([7, 8], [7, 8]))
        self.assertEqual((output.log_probs, output.stop_reason), ([-1.0, -2.0], "stop"))
        sent = {"run": 5, "call": 1, "prompt_ids": [1, 2], "sampling_params": {"top_p": 0.5}}
        self.assertEqual(self.asked[-1], ("generate", sent))

    def test_pictures_are_refused(self):
        manager = self.modules.AsyncLLMServerManager()
        with self.assertRaisesRegex(TypeError, "image_data is not read"):
            asyncio.run(manager.generate(prompt_ids=[], sampling_params={}, image_data=[1]))

    def test_tokens_of_turns_are_joined_with_their_masks(self):
        async def merge():
            loop = self.modules.AgentLoopBase(self.config, tokenizer=self.tokenizer)
            prompt = await loop.ct_build_initial_tokens([{"content": "abcdef"}])
            ids, mask, logprobs = await loop.ct_merge_assistant_token(prompt, [7], [], [], [-0.5])
            turns = [{"content": "a"}]
            return prompt, await loop.ct_merge_context_msg(
                turns, turns * 3, ids.token_ids, mask, logprobs
            )

        prompt, (ids, mask, logprobs) = asyncio.run(merge())
        self.assertEqual(prompt, [100, 101, 102])  # the last of prompt_length
        self.assertEqual(ids.token_ids, [100, 101, 102, 7, 2])
        self.assertEqual((mask, logprobs), ([1, 0], [-0.5, 0.0]))

    def test_the_single_turn_loop(self):
        async def run():
            loop = self.modules.SingleTurnAgentLoop(
                self.config, self.modules.AsyncLLMServerManager(1), self.tokenizer
            )
            return await loop.run({}, raw_prompt=[{"content": "ab"}])

        output = asyncio.run(run())
        self.assertEqual((output.prompt_ids, output.response_ids), ([97, 98], [7, 8]))
        self.assertEqual((output.response_mask, output.num_turns), ([1, 1], 2))

    def test_tool_calls_are_found_by_the_owner(self):
        parser = self.modules.ToolParser.get_tool_parser("hermes", self.tokenizer)
        content, calls = asyncio.run(parser.extract_tool_calls([1, 2]))
        self.assertEqual((content, calls[0].name, calls[0].arguments), ("c", "f", "{}"))


if __name__ == "__main__":
    unittest.main()
