"""Scores with the function of a user's file, asynchronous or not. Follows python_server.py."""

import importlib.util
import math
import os
import sys


def is_awaitable(value):
    flags = getattr(getattr(value, "gi_code", None), "co_flags", 0)
    return hasattr(type(value), "__await__") or bool(flags & 0x100)  # types.coroutine


# Of this process, from the first call that needs one: connections that a file keeps stay good.
loop = None
called_in_loop = False  # the function makes tasks before it returns one


def own_loop():
    global loop
    import asyncio

    if loop is None:
        loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)  # asyncio.run() in a file leaves none
    return loop


async def finished(value):
    while is_awaitable(value):
        value = await value
    return value


def awaited(value):
    """What an asynchronous function gives in the end."""
    if not is_awaitable(value):
        return value
    # A task or a future belongs to the loop that it was made in.
    its_loop = getattr(value, "get_loop", None)
    return (its_loop() if its_loop else own_loop()).run_until_complete(finished(value))


async def called_within(function, arguments):
    return await finished(function(**arguments))


def call(function, arguments):
    global called_in_loop
    if "asyncio" in sys.modules:
        own_loop()  # for what makes futures of the present loop
    if not called_in_loop:
        try:
            return awaited(function(**arguments))
        except RuntimeError as error:
            if "no running event loop" not in str(error):
                raise
            called_in_loop = True
    return own_loop().run_until_complete(called_within(function, arguments))


def number(value):
    """A float, or None: numpy's and torch's scalars count as numbers, bool too."""
    if isinstance(value, (str, bytes, list, tuple, dict)) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):  # the last: an integer beyond any float
        return None


def judge(result):
    extra = {}
    if isinstance(result, dict):
        if "score" not in result:
            return {
                "invalid": "returned a dict without 'score'; it has "
                + ", ".join(repr(key) for key in list(result)[:8])
            }
        for key, value in result.items():
            value = number(value) if key != "score" else None
            if value is not None and math.isfinite(value):
                extra[str(key)] = value
        result = result["score"]
    elif isinstance(result, (tuple, list)) and result:
        result = result[0]  # as verl does
    score = number(result)
    if score is None:
        return {
            "invalid": f"returned {result!r:.100} of type {type(result).__name__}, not a number"
        }
    if not math.isfinite(score):
        return {"invalid": f"returned {score}, which is not a finite number"}
    return {"score": score, "extra": extra}


def load(setup):
    path = setup["path"]
    if not os.path.isfile(path):
        return None, f"there is no file {path}"
    sys.path.append(os.path.dirname(os.path.abspath(path)))
    try:
        spec = importlib.util.spec_from_file_location("custom_module", path)
        if spec is None:
            return None, f"{path} is no Python file"
        module = importlib.util.module_from_spec(spec)
        sys.modules["custom_module"] = module
        spec.loader.exec_module(module)
    except BaseException:
        return None, f"{path} cannot be loaded:\n{trace()}"
    function = getattr(module, setup["name"], None)
    if not callable(function):
        names = [
            name
            for name, value in vars(module).items()
            if callable(value) and getattr(value, "__module__", "") == "custom_module"
        ]
        return None, f"{path} has no function '{setup['name']}'" + (
            f"; it has {', '.join(names)}" if names else ""
        )
    return function, ""


def score(setup, function, request):
    if setup["lists"]:
        scores = call(
            function,
            {
                "data_sources": [request["data_source"]],
                "solution_strs": [request["solution_str"]],
                "ground_truths": [request["ground_truth"]],
                "extra_infos": [request["extra_info"]],
                **setup["kwargs"],
            },
        )
        try:
            (one,) = scores  # a list, a tuple, an array
        except (TypeError, ValueError):
            return {
                "invalid": f"returned {scores!r:.100} of type {type(scores).__name__} for lists of "
                "one sample, not a list of one score (reward.reward_manager.name=batch)"
            }
        return judge(awaited(one))
    return judge(
        call(
            function,
            {
                "data_source": request["data_source"],
                "solution_str": request["solution_str"],
                "ground_truth": request["ground_truth"],
                "extra_info": request["extra_info"],
                **setup["kwargs"],
            },
        )
    )


if __name__ == "__main__":
    serve(load, score)
