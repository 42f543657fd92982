#include "rl/reward/python_worker.h"

namespace rl {

const char* const kPythonWorker = R"python(
import fcntl, importlib.util, json, math, os, resource, socket, sys

# When the process that started this one is gone, the kernel ends the group by SIGIO, whatever Python is doing.
fcntl.fcntl(4, fcntl.F_SETOWN, -os.getpgrp())
fcntl.fcntl(4, fcntl.F_SETFL, os.O_ASYNC)
for descriptor in (3, 4):
    os.set_inheritable(descriptor, False)
sys.dont_write_bytecode = True  # nothing is left beside a user's files
connection = socket.socket(fileno=3)
requests = connection.makefile("r", encoding="utf-8", newline="\n")


def answer(message):
    connection.sendall(json.dumps(message).encode() + b"\n")


def trace():
    import traceback  # takes its time, and most processes never need it
    return "".join(traceback.format_exception(*sys.exc_info()))[-4000:]


def number(value):
    """A float, or None: numpy's and torch's scalars count as numbers, bool too."""
    if isinstance(value, (str, bytes, list, tuple, dict)) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def judge(result):
    extra = {}
    if isinstance(result, dict):
        if "score" not in result:
            return {"invalid": "returned a dict without 'score'; it has " + ", ".join(repr(key) for key in list(result)[:8])}
        for key, value in result.items():
            value = number(value) if key != "score" else None
            if value is not None and math.isfinite(value):
                extra[str(key)] = value
        result = result["score"]
    elif isinstance(result, (tuple, list)) and result:
        result = result[0]  # as verl does
    score = number(result)
    if score is None:
        return {"invalid": f"returned {result!r:.100} of type {type(result).__name__}, not a number"}
    if not math.isfinite(score):
        return {"invalid": f"returned {score}, which is no finite number"}
    return {"score": score, "extra": extra}


def load(setup):
    if setup["memory_bytes"] > 0:
        resource.setrlimit(resource.RLIMIT_AS, (setup["memory_bytes"], setup["memory_bytes"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
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
        names = [name for name, value in vars(module).items() if callable(value) and getattr(value, "__module__", "") == "custom_module"]
        return None, f"{path} has no function '{setup['name']}'" + (f"; it has {', '.join(names)}" if names else "")
    return function, ""


def main():
    setup = json.loads(requests.readline())
    function, problem = load(setup)
    if function is None:
        return answer({"fatal": problem})
    answer({"ready": True})
    for line in requests:
        request = json.loads(line)
        try:
            result = judge(function(data_source=request["data_source"], solution_str=request["solution_str"], ground_truth=request["ground_truth"],
                                    extra_info=request["extra_info"], **setup["kwargs"]))
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            result = {"error": f"{type(error).__name__}: {error}"[:500], "traceback": trace()}
        sys.stdout.flush()
        answer(result)


main()
)python";

}  // namespace rl
