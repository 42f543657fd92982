"""Tools and interactions: how they are loaded and called."""

import json
import os
import sys
import tempfile
import unittest

from python_program import load

TOOLS = """
class Adder:
    def __init__(self, config, tool_schema):
        self.name, self.config, self.released = "add", config, []

    async def create(self, create_kwargs=None):
        return "instance", None

    async def execute(self, instance, arguments, agent_data):
        if "answer" in arguments:
            return arguments["answer"]
        return str(sum(arguments["values"])), 0.5, {}

    def release(self, instance):
        self.released.append(instance)


class Checker:
    def __init__(self, config):
        self.ended = []

    def start_interaction(self, instance, **_):
        return instance

    async def generate_response(self, instance, messages, wanted):
        return messages[-1]["content"] == wanted, "go on", 1, {}

    def finalize_interaction(self, instance, **_):
        self.ended.append(instance)
"""


class ToolProgram(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        with open(os.path.join(folder.name, "adder_tools.py"), "w") as file:
            file.write(TOOLS)
        paths, modules = list(sys.path), set(sys.modules)
        self.addCleanup(lambda: [sys.modules.pop(name) for name in set(sys.modules) - modules])
        self.addCleanup(lambda: sys.path.__setitem__(slice(None), paths))
        self.folder = folder.name
        self.program = load(
            "rl/reward/python_server.py", "rl/agent/tool_modules.py", "rl/agent/tool_program.py"
        )

    def load(self, tools=("adder_tools.Adder",), interactions=()):
        for name in [name for name in sys.modules if name.partition(".")[0] == "verl"]:
            del sys.modules[name]
        return self.program.load(
            {
                "folders": [self.folder],
                "tools": [{"class_name": name} for name in tools],
                "interactions": [{"class_name": name, "name": "check"} for name in interactions],
            }
        )

    def ask(self, loaded, **request):
        return self.program.handle({}, loaded, {"request": json.dumps({"id": "r1", **request})})

    def tool(self, loaded, **arguments):
        return self.ask(
            loaded,
            kind="tool",
            name="add",
            arguments=arguments,
            create_kwargs={},
            messages=[],
            tools_kwargs={},
        )

    def test_a_tool_is_created_called_and_released(self):
        loaded, problem = self.load()
        self.assertEqual(problem, "")
        self.assertEqual(self.tool(loaded, values=[1, 2]), {"text": "3", "reward": 0.5})
        self.assertEqual(loaded["tools"]["add"].released, ["instance"])

    def test_answers_of_wrong_types_are_failures(self):
        loaded, _ = self.load()
        self.assertEqual(self.tool(loaded, answer="alone"), {"text": "alone", "reward": None})
        self.assertIn("has no attribute 'text'", self.tool(loaded, answer=[1])["failed"])
        self.assertIn("KeyError", self.tool(loaded)["traceback"])
        self.assertEqual(loaded["tools"]["add"].released, ["instance"] * 3)

    def test_an_interaction_is_started_asked_and_ended(self):
        loaded, problem = self.load((), ("adder_tools.Checker",))
        self.assertEqual(problem, "")
        answer = self.ask(
            loaded,
            kind="interaction",
            name="check",
            kwargs={"wanted": "4"},
            messages=[{"role": "assistant", "content": "4"}],
        )
        self.assertEqual(answer, {"done": True, "text": "go on", "reward": 1.0})
        self.assertEqual(loaded["interactions"]["check"].ended, ["r1"])

    def test_what_cannot_be_loaded(self):
        self.assertIn("the tool adder_tools.None cannot be", self.load(("adder_tools.None",))[1])
        self.assertIn("a module and a class are needed", self.load(("Adder",))[1])
        self.assertEqual(self.load(("adder_tools.Adder",) * 2)[1], "two tools are called 'add'")


if __name__ == "__main__":
    unittest.main()
