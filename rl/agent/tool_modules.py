"""Stand-ins for the modules of verl that tools import, used where verl is not installed.

Between python_server.py and the program that calls tools.
"""

import importlib.util
import sys
import types
import uuid


class Fields:
    """Values with declared names: what is given and declared, in the order of the declaration."""

    # Name: the class of the value, a list with it for a dictionary of such values, or None.
    declared = {}
    defaults = {}

    def __init__(self, **values):
        self._given = set()
        for name, kind in self.declared.items():
            value = values.get(name, self.defaults.get(name))
            self._given |= {name} & values.keys()
            if isinstance(kind, list) and isinstance(value, dict):
                value = {
                    key: item if isinstance(item, Fields) else kind[0](**item)
                    for key, item in value.items()
                }
            elif isinstance(kind, type) and isinstance(value, dict):
                value = kind(**value)
            setattr(self, name, value)

    @classmethod
    def model_validate(cls, values):
        return values if isinstance(values, cls) else cls(**values)

    def model_dump(self, exclude_unset=False, exclude_none=False, **_):
        def dump(value):
            if isinstance(value, Fields):
                return value.model_dump(exclude_unset=exclude_unset, exclude_none=exclude_none)
            return (
                {key: dump(item) for key, item in value.items()}
                if isinstance(value, dict)
                else value
            )

        return {
            name: dump(getattr(self, name))
            for name in self.declared
            if not (exclude_unset and name not in self._given)
            and not (exclude_none and getattr(self, name) is None)
        }


class OpenAIFunctionPropertySchema(Fields):
    declared = {"type": None, "description": None, "enum": None}


class OpenAIFunctionParametersSchema(Fields):
    declared = {"type": None, "properties": [OpenAIFunctionPropertySchema], "required": None}
    defaults = {"type": "object", "properties": {}, "required": []}


class OpenAIFunctionSchema(Fields):
    declared = {
        "name": None,
        "description": None,
        "parameters": OpenAIFunctionParametersSchema,
        "strict": None,
    }
    defaults = {"strict": False}


class OpenAIFunctionToolSchema(Fields):
    declared = {"type": None, "function": OpenAIFunctionSchema}


class ToolResponse(Fields):
    declared = {"text": None, "image": None, "video": None}

    def is_empty(self):
        return not self.text and not self.image and not self.video


class BaseTool:
    def __init__(self, config, tool_schema):
        self.config = config
        self.tool_schema = tool_schema or self.get_openai_tool_schema()
        assert self.tool_schema is not None, "Tool schema is not set!"
        self.name = self.tool_schema.function.name

    def get_openai_tool_schema(self):
        return getattr(self, "tool_schema", None)

    async def create(self, instance_id=None, **kwargs):
        return instance_id or str(uuid.uuid4()), ToolResponse()

    async def execute(self, instance_id, parameters, **kwargs):
        return ToolResponse(text="Updated the tool state."), 0.0, {}

    async def calc_reward(self, instance_id, **kwargs):
        return 0.0

    async def release(self, instance_id, **kwargs):
        pass


class BaseInteraction:
    def __init__(self, config):
        self.config = config
        self.name = config.get("name", "interaction_agent")

    async def start_interaction(self, instance_id=None, **kwargs):
        return instance_id or str(uuid.uuid4())

    async def generate_response(self, instance_id, messages, **kwargs):
        return False, "", 0.0, {}

    async def calculate_score(self):
        return 0.0

    async def finalize_interaction(self):
        pass


def rollout_trace_op(function):
    return function


def stand_in_for_verl(modules=None, always=False):
    """Makes those modules importable, unless verl is installed and `always` is not asked for."""
    if not always and importlib.util.find_spec("verl") is not None:
        return
    schemas = {
        kind.__name__: kind
        for kind in (
            OpenAIFunctionPropertySchema,
            OpenAIFunctionParametersSchema,
            OpenAIFunctionSchema,
            OpenAIFunctionToolSchema,
            ToolResponse,
        )
    }
    for name, contents in (
        modules
        or {
            "verl": {},
            "verl.tools": {},
            "verl.tools.schemas": schemas,
            "verl.tools.base_tool": {"BaseTool": BaseTool, **schemas},
            "verl.interactions": {},
            "verl.interactions.base": {"BaseInteraction": BaseInteraction},
            "verl.utils": {},
            "verl.utils.rollout_trace": {"rollout_trace_op": rollout_trace_op},
        }
    ).items():
        module = types.ModuleType(name)
        # A package, so that what is not here is a ModuleNotFoundError by its name.
        module.__path__ = []
        vars(module).update(contents)
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent in sys.modules:
            setattr(sys.modules[parent], child, module)
