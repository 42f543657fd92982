"""Loads a user's tools and interactions, and calls them. Follows tool_modules.py."""

import asyncio
import importlib
import inspect
import json
import math
import os
import sys
import types


def load_class(name):
    module, _, kind = name.rpartition(".")
    if not module:
        raise ValueError(
            f"class_name {name!r}: a module and a class are needed, as in my_tools.Calculator"
        )
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
            tool = load_class(entry["class_name"])(
                config=entry.get("config") or {}, tool_schema=schema
            )
            name = tool.name
        except BaseException:
            return None, f"the tool {entry['class_name']} cannot be loaded:\n{trace()}"
        if name in loaded["tools"]:
            return None, f"two tools are called {name!r}"
        loaded["tools"][name] = tool
    for entry in setup["interactions"]:
        try:
            name = entry["name"]
            loaded["interactions"][name] = load_class(entry["class_name"])(
                config={"name": name, **(entry.get("config") or {})}
            )
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
        agent = types.SimpleNamespace(
            messages=request["messages"],
            tools_kwargs=request["tools_kwargs"],
            extra_fields={},
            request_id=request["id"],
        )
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
        done, text, score, _ = await result_of(
            interaction.generate_response(
                instance or request["id"], request["messages"], **request["kwargs"]
            )
        )
    finally:
        if len(inspect.signature(interaction.finalize_interaction).parameters) > 0:
            await result_of(
                interaction.finalize_interaction(instance or request["id"], **request["kwargs"])
            )
    if not isinstance(text, str):
        raise TypeError(f"generate_response answered with {type(text).__name__}, not text")
    return {"done": bool(done), "text": text, "reward": number_or_none(score)}


def handle(setup, loaded, message):
    request = json.loads(message["request"])  # text in text, so that dictionaries keep their order
    kind = request["kind"]
    if kind == "schemas":
        return {
            "schemas": json.dumps(
                [
                    tool.tool_schema.model_dump(exclude_unset=True, exclude_none=True)
                    for tool in loaded["tools"].values()
                ]
            )
        }
    try:
        if kind == "tool":
            return asyncio.run(call_tool(loaded["tools"][request["name"]], request))
        return asyncio.run(answer_turn(loaded["interactions"][request["name"]], request))
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:  # an answer, too: it is not tried again
        return {"failed": f"{error}"[:2000], "traceback": trace()}


if __name__ == "__main__":
    serve(load, handle)
