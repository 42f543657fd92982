#include "rl/agent/tool_program.h"

namespace rl {

const char* const kToolModules = R"python(
import types, uuid


class Fields:
    """Values with declared names: what is given and declared is kept, in the order of the declaration."""
    declared = {}  # name: the class of the value, a list with it for a dictionary of such values, or None
    defaults = {}

    def __init__(self, **values):
        self._given = set()
        for name, kind in self.declared.items():
            value = values.get(name, self.defaults.get(name))
            self._given |= {name} & values.keys()
            if isinstance(kind, list) and isinstance(value, dict):
                value = {key: item if isinstance(item, Fields) else kind[0](**item) for key, item in value.items()}
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
            return {key: dump(item) for key, item in value.items()} if isinstance(value, dict) else value
        return {name: dump(getattr(self, name)) for name in self.declared
                if not (exclude_unset and name not in self._given) and not (exclude_none and getattr(self, name) is None)}


class OpenAIFunctionPropertySchema(Fields):
    declared = {"type": None, "description": None, "enum": None}


class OpenAIFunctionParametersSchema(Fields):
    declared = {"type": None, "properties": [OpenAIFunctionPropertySchema], "required": None}
    defaults = {"type": "object", "properties": {}, "required": []}


class OpenAIFunctionSchema(Fields):
    declared = {"name": None, "description": None, "parameters": OpenAIFunctionParametersSchema, "strict": None}
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
    schemas = {kind.__name__: kind for kind in (OpenAIFunctionPropertySchema, OpenAIFunctionParametersSchema, OpenAIFunctionSchema, OpenAIFunctionToolSchema, ToolResponse)}
    for name, contents in (modules or {"verl": {}, "verl.tools": {}, "verl.tools.schemas": schemas, "verl.tools.base_tool": {"BaseTool": BaseTool, **schemas}, "verl.interactions": {},
                                       "verl.interactions.base": {"BaseInteraction": BaseInteraction}, "verl.utils": {},
                                       "verl.utils.rollout_trace": {"rollout_trace_op": rollout_trace_op}}).items():
        module = types.ModuleType(name)
        module.__path__ = []  # a package, so that what is not here is a ModuleNotFoundError by its name
        vars(module).update(contents)
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent in sys.modules:
            setattr(sys.modules[parent], child, module)
)python";

const char* const kToolProgram = R"python(
import asyncio, importlib, inspect


def load_class(name):
    module, _, kind = name.rpartition(".")
    if not module:
        raise ValueError(f"class_name {name!r}: a module and a class are needed, as in my_tools.Calculator")
    return getattr(importlib.import_module(module), kind)


def load(setup):
    stand_in_for_verl()
    for folder in [*setup["folders"], os.getcwd()]:
        if folder not in sys.path:
            sys.path.append(folder)
    loaded = {"tools": {}, "interactions": {}}
    for entry in setup["tools"]:
        try:
            schema = entry.get("tool_schema")
            if schema is not None:
                schemas = importlib.import_module("verl.tools.schemas")
                schema = schemas.OpenAIFunctionToolSchema.model_validate(schema)
            tool = load_class(entry["class_name"])(config=entry.get("config") or {}, tool_schema=schema)
            name = tool.name
        except BaseException:
            return None, f"the tool {entry['class_name']} cannot be loaded:\n{trace()}"
        if name in loaded["tools"]:
            return None, f"two tools are called {name!r}"
        loaded["tools"][name] = tool
    for entry in setup["interactions"]:
        try:
            name = entry["name"]
            loaded["interactions"][name] = load_class(entry["class_name"])(config={"name": name, **(entry.get("config") or {})})
        except BaseException:
            return None, f"the interaction {entry['class_name']} cannot be loaded:\n{trace()}"
    sys.stdout.flush()
    return loaded, ""


async def result_of(value):
    return await value if inspect.isawaitable(value) else value


def number_or_none(value):
    try:
        value = float(value)
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None


async def call_tool(tool, request):
    instance = None
    try:
        created = await result_of(tool.create(create_kwargs=request["create_kwargs"]))
        instance = created[0] if isinstance(created, tuple) else created
        agent = types.SimpleNamespace(messages=request["messages"], tools_kwargs=request["tools_kwargs"], extra_fields={}, request_id=request["id"])
        result = await result_of(tool.execute(instance, request["arguments"], agent_data=agent))
    finally:
        if instance is not None:
            await result_of(tool.release(instance))
    if not isinstance(result, tuple):
        result = (result,)
    if not 1 <= len(result) <= 3:
        raise TypeError(f"execute returned {len(result)} values, not (response, reward, metrics)")
    response = result[0]
    if getattr(response, "image", None) or getattr(response, "video", None):
        raise TypeError("it answered with an image or a video, and only text is read")
    text = response if isinstance(response, str) else response.text
    if text is not None and not isinstance(text, str):
        raise TypeError(f"it answered with {type(text).__name__}, not text")
    return {"text": text or "", "reward": number_or_none(result[1]) if len(result) > 1 else None}


async def answer_turn(interaction, request):
    instance = await result_of(interaction.start_interaction(request["id"], **request["kwargs"]))
    try:
        done, text, score, _ = await result_of(interaction.generate_response(instance or request["id"], request["messages"], **request["kwargs"]))
    finally:
        if len(inspect.signature(interaction.finalize_interaction).parameters) > 0:
            await result_of(interaction.finalize_interaction(instance or request["id"], **request["kwargs"]))
    if not isinstance(text, str):
        raise TypeError(f"generate_response answered with {type(text).__name__}, not text")
    return {"done": bool(done), "text": text, "reward": number_or_none(score)}


def handle(setup, loaded, message):
    request = json.loads(message["request"])  # text in text, so that dictionaries keep their order
    kind = request["kind"]
    if kind == "schemas":
        return {"schemas": json.dumps([tool.tool_schema.model_dump(exclude_unset=True, exclude_none=True) for tool in loaded["tools"].values()])}
    try:
        if kind == "tool":
            return asyncio.run(call_tool(loaded["tools"][request["name"]], request))
        return asyncio.run(answer_turn(loaded["interactions"][request["name"]], request))
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:  # an answer, too: it is not tried again
        return {"failed": f"{error}"[:2000], "traceback": trace()}


serve(load, handle)
)python";

}  // namespace rl
