"""Runs a user's agent loops, many at once in one event loop. Follows loop_modules.py."""

import asyncio
import concurrent.futures
import contextlib
import importlib
import inspect
import json
import math
import os
import sys
import threading


def load_class(name):
    module, _, kind = name.rpartition(".")
    if not module:
        raise ValueError(f"{name!r}: a module and a class are needed, as in my_loops.Debate")
    return getattr(importlib.import_module(module), kind)


def accepted(function, values):
    """Those of the values that a function takes by name."""
    parameters = inspect.signature(function).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return values
    return {
        name: value for name, value in values.items() if any(one.name == name for one in parameters)
    }


class Loops:
    """The classes by name."""

    def __init__(self, setup):
        self.config = boxed(setup["config"])
        self.tokenizer = Tokenizer(setup["tokenizer"])
        self.entries = {"single_turn_agent": {"_target_": SingleTurnAgentLoop}}
        self.initialized = set()
        for entry in setup["loops"]:
            entry = dict(entry)
            self.entries[entry.pop("name")] = entry
        if setup["loader"]:
            given = load_class(setup["loader"])
            if not inspect.isclass(given):
                offered = {"config": self.config, "tokenizer": self.tokenizer}
                given = given(**accepted(given, offered))
            for name, kind in given.items() if isinstance(given, dict) else [(None, given)]:
                if not inspect.isclass(kind):
                    raise TypeError(f"{setup['loader']} gave {kind!r:.100}, not a class")
                self.entries[name] = {"_target_": kind}
        for name, entry in self.entries.items():
            try:
                if isinstance(entry["_target_"], str):
                    entry["_target_"] = load_class(entry["_target_"])
            except BaseException:
                raise RuntimeError(
                    f"the agent loop {name!r} ({entry['_target_']}) cannot be loaded:\n{trace()}"
                ) from None
        self.entries = registered | self.entries

    def make(self, name, run):
        entry = dict(self.entries.get(name) or self.entries[None])
        kind = entry.pop("_target_")
        everything = {
            "server_manager": AsyncLLMServerManager(run),
            "tokenizer": self.tokenizer,
            "processor": None,
            "dataset_cls": None,
            "data_config": DictConfigWrap(self.config.data),
            "trainer_config": DictConfigWrap(self.config),
            "config": self.config,
            "hf_model_type": None,
            **entry,
        }
        if kind not in self.initialized and hasattr(kind, "init_class"):
            offered = {"config": self.config, "tokenizer": self.tokenizer, "processor": None}
            kind.init_class(**accepted(kind.init_class, {**offered, **entry}))
            self.initialized.add(kind)
        if "config" not in inspect.signature(kind.__init__).parameters:
            del everything["config"]
        return kind(**accepted(kind.__init__, everything))


def number_or_none(value):
    if value is None:
        return None
    value = float(value)
    if not math.isfinite(value):
        raise ValueError(f"reward_score is {value}, which is not a finite number")
    return value


async def run_loop(loops, message):
    number = message["run"]
    try:
        agent = loops.make(message["agent"], number)
        values = boxed(message["row"])
        if "messages" in inspect.signature(agent.run).parameters:
            values["messages"] = values["raw_prompt"]
        output = await agent.run(
            **accepted(agent.run, {"sampling_params": dict(message["sampling_params"]), **values})
        )
        metrics = output.metrics
        if not isinstance(metrics, dict):
            metrics = metrics.model_dump() if hasattr(metrics, "model_dump") else {}
        send(
            {
                "done": number,
                "prompt_ids": list(output.prompt_ids),
                "response_ids": list(output.response_ids),
                "response_mask": list(output.response_mask),
                "reward_score": number_or_none(output.reward_score),
                "num_turns": int(output.num_turns or 0),
                "metrics": metrics,
                "extra_fields": output.extra_fields or {},
            }
        )
    except asyncio.CancelledError:
        send({"cancelled": number})
    except BaseException as error:
        send(
            {
                "failed": number,
                "why": f"{type(error).__name__}: {error}"[:1000],
                "traceback": trace(),
            }
        )
    finally:
        runs.pop(number, None)
        sys.stdout.flush()


def read(loops, event_loop):
    def begin(message):
        runs[message["run"]] = event_loop.create_task(run_loop(loops, message))

    def cancel(number):
        runs[number].cancel() if number in runs else None

    for line in requests:
        message = json.loads(line)
        if "answer" in message:
            future = asked.pop(message["answer"], None)
            if future is not None and not future.cancelled():
                with contextlib.suppress(concurrent.futures.InvalidStateError):
                    future.set_result(message)
        elif "run" in message:
            event_loop.call_soon_threadsafe(begin, message)
        elif "cancel" in message:
            event_loop.call_soon_threadsafe(cancel, message["cancel"])
    os._exit(0)  # the owner is gone


async def main():
    setup = json.loads(requests.readline())
    limit(setup)
    stand_in_for_verl()
    stand_in_for_verl(LOOP_MODULES, always=True)
    for folder in [*setup["folders"], os.getcwd()]:
        if folder not in sys.path:
            sys.path.append(folder)
    event_loop = asyncio.get_running_loop()
    try:
        loops = Loops(setup)
    except BaseException as error:
        return send({"fatal": f"{error}"[:4000] if isinstance(error, RuntimeError) else trace()})
    sys.stdout.flush()
    send(
        {
            "ready": True,
            "loops": [name for name in loops.entries if name is not None],
            "any": None in loops.entries,
        }
    )
    threading.Thread(target=read, args=(loops, event_loop), daemon=True).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    connect()
    keep()
    asyncio.run(main())
