"""Stand-ins for verl's modules, as tools use them."""

import importlib
import sys
import unittest

from python_program import load


class Schemas(unittest.TestCase):
    def setUp(self):
        self.modules = load("rl/agent/tool_modules.py")

    def test_values_keep_what_was_given_and_declared(self):
        schema = self.modules.OpenAIFunctionToolSchema.model_validate(
            {
                "type": "function",
                "unknown": 1,
                "function": {"name": "f", "parameters": {"properties": {"x": {"type": "int"}}}},
            }
        )
        self.assertEqual(schema.function.parameters.properties["x"].type, "int")
        self.assertEqual(
            schema.model_dump(exclude_unset=True, exclude_none=True),
            {
                "type": "function",
                "function": {"name": "f", "parameters": {"properties": {"x": {"type": "int"}}}},
            },
        )

    def test_defaults_are_dumped_unless_unset_values_are_left_out(self):
        parameters = self.modules.OpenAIFunctionParametersSchema()
        self.assertEqual(
            parameters.model_dump(), {"type": "object", "properties": {}, "required": []}
        )
        self.assertEqual(parameters.model_dump(exclude_unset=True), {})

    def test_an_empty_response(self):
        self.assertTrue(self.modules.ToolResponse().is_empty())
        self.assertFalse(self.modules.ToolResponse(text="x").is_empty())


class Modules(unittest.TestCase):
    def tearDown(self):
        for name in [name for name in sys.modules if name.partition(".")[0] == "verl"]:
            del sys.modules[name]

    def test_they_can_be_imported(self):
        modules = load("rl/agent/tool_modules.py")
        modules.stand_in_for_verl(
            {"verl": {}, "verl.tools": {}, "verl.tools.base_tool": {"BaseTool": modules.BaseTool}},
            always=True,
        )
        self.assertIs(importlib.import_module("verl.tools.base_tool").BaseTool, modules.BaseTool)
        with self.assertRaisesRegex(ModuleNotFoundError, "verl.trainer"):
            importlib.import_module("verl.trainer")


if __name__ == "__main__":
    unittest.main()
