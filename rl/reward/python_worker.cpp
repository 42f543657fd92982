#include "rl/reward/python_worker.h"

namespace rl {

const char* const kPythonServer = R"python(
import fcntl, importlib.util, json, math, os, resource, signal, socket, sys

sys.dont_write_bytecode = True  # nothing is left beside a user's files


def connect(line=3, life=4):
    """Takes up two descriptors, under other numbers, which programs that are started do not get. When the process that started this one is gone, the kernel ends the group by SIGIO, whatever Python
    is doing."""
    global connection, requests, owner
    os.environ["STARLING_SCORER"] = str(os.getpid())  # by which what the user's code starts is found
    fcntl.fcntl(life, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(life, fcntl.F_SETFL, os.O_ASYNC)
    moved, owner = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 64 + os.urandom(1)[0] % 128) for descriptor in (line, life)]
    for descriptor in (line, life):
        os.close(descriptor)
    connection = socket.socket(fileno=moved)
    requests = connection.makefile("r", encoding="utf-8", newline="\n")


def end_children():
    """Kills the children of this process until it has none: those of one that dies become this one's."""
    while True:
        for name in os.listdir("/proc"):
            try:
                with open(f"/proc/{int(name)}/stat", "rb") as file:
                    parent = int(file.read().rsplit(b")", 1)[1].split()[1])
                if parent == os.getpid():
                    os.kill(int(name), signal.SIGKILL)
            except (ValueError, OSError):
                continue  # no process, or no more
        try:
            os.wait()
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass
        except ChildProcessError:
            return


def keep():
    """Goes on in a child. This process stays its parent: what is orphaned below becomes its child, so that it can be found whatever session and environment it has. When the child has ended it ends
    what is left, and then as the child did."""
    try:
        import ctypes
        subreaper = ctypes.CDLL(None).prctl(36, *(ctypes.c_ulong(value) for value in (1, 0, 0, 0)))  # PR_SET_CHILD_SUBREAPER
    except Exception:
        return  # no ctypes: orphans are found by their environment alone
    child = os.fork() if subreaper == 0 else 0
    if child == 0:
        return
    for number in (signal.SIGIO, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    requests.close()
    connection.close()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    ended, status = 0, 0
    while ended != child:
        ended, status = os.wait()
    end_children()
    if os.WIFSIGNALED(status):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if os.WTERMSIG(status) != signal.SIGKILL:
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status))


def answer(message):
    connection.sendall(json.dumps(message).encode() + b"\n")


def trace():
    import traceback  # takes its time, and most processes never need it
    return "".join(traceback.format_exception(*sys.exc_info()))[-4000:]


def find_clone():
    """A function that makes a process like this one, as a sibling, so that who started this one hears of its end: the new process gets 0 from it, this one the number.
    None where copying is not safe: what the file imported may have started threads or opened connections, which copies cannot share."""
    number = {"x86_64": 56, "aarch64": 220}.get(os.uname().machine)
    try:
        import ctypes
        if number is None or not hasattr(socket, "recv_fds") or len(os.listdir("/proc/self/task")) != 1:
            return None
        opened = [os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")
                  if int(name) not in (0, 1, 2, connection.fileno(), owner) and os.path.exists(f"/proc/self/fd/{name}")]
        if any(target.startswith(("socket:", "pipe:", "anon_inode:")) for target in opened):
            return None
        library, python = ctypes.PyDLL(None, use_errno=True), ctypes.pythonapi
        library.syscall.restype = ctypes.c_long
    except Exception:
        return None
    flags = 0x8000 | signal.SIGCHLD  # CLONE_PARENT

    def clone():
        python.PyOS_BeforeFork()
        child = library.syscall(ctypes.c_long(number), ctypes.c_long(flags), ctypes.c_long(0), ctypes.c_long(0), ctypes.c_long(0), ctypes.c_long(0))
        if child == 0:
            python.PyOS_AfterFork_Child()
        else:
            python.PyOS_AfterFork_Parent()
        return child

    return clone


def forget_chance():
    """Copies shall not draw the same random numbers."""
    for name, module in (("random", sys.modules.get("random")), ("numpy.random", sys.modules.get("numpy.random"))):
        if module is not None:
            module.seed()


def make_copies(clone):
    """Each message on the connection brings the descriptors of one copy. Returns in the copies; ends this process with the connection."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, 1, 3)
        if not message or len(descriptors) != 3:
            sys.exit(0)
        sys.stdout.flush()
        sys.stderr.flush()
        child = clone()
        if child == 0:
            break
        for descriptor in descriptors:
            os.close(descriptor)
        answer({"pid": child})
    os.setpgid(0, 0)
    requests.close()
    connection.close()
    os.close(owner)
    theirs, life, output = descriptors
    for number in (1, 2):
        os.dup2(output, number)
    os.close(output)
    connect(theirs, life)
    keep()
    forget_chance()


def limit(setup):
    if setup["memory_bytes"] > 0:
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]  # may be lower already, and cannot be raised
        most = setup["memory_bytes"] if hard == resource.RLIM_INFINITY else min(hard, setup["memory_bytes"])
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def serve(load, handle):
    """load(setup) gives what is loaded once, or None, and what is wrong with it; handle(setup, loaded, request) an answer, or an exception."""
    connect()
    setup = json.loads(requests.readline())
    if not setup["copies"]:
        keep()  # copies have theirs
    limit(setup)
    loaded, problem = load(setup)
    if loaded is None:
        return answer({"fatal": problem})
    clone = find_clone() if setup["copies"] else None
    answer({"ready": True, "copies": clone is not None})
    if setup["copies"] and clone is None:
        return requests.readline()  # another is started, with a keeper, and this one ended
    if clone is not None:
        make_copies(clone)
        answer({"ready": True})
    own = os.getpid()
    for line in requests:
        request = json.loads(line)
        number = request.pop("id")  # which the user's code is not given
        try:
            result = handle(setup, loaded, request)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            result = {"error": f"{type(error).__name__}: {error}"[:500], "traceback": trace()}
        if os.getpid() != own:
            os._exit(0)  # the user's code forked, and the child came back too: its parent answers
        sys.stdout.flush()
        answer({**result, "id": number})
)python";

const char* const kPythonScorer = R"python(
def is_awaitable(value):
    return hasattr(type(value), "__await__") or bool(getattr(getattr(value, "gi_code", None), "co_flags", 0) & 0x100)  # types.coroutine


loop = None  # of this process, from the first call that needs one: connections that a file keeps stay good
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


def score(setup, function, request):
    if setup["lists"]:
        scores = call(function, {"data_sources": [request["data_source"]], "solution_strs": [request["solution_str"]], "ground_truths": [request["ground_truth"]],
                                 "extra_infos": [request["extra_info"]], **setup["kwargs"]})
        try:
            one, = scores  # a list, a tuple, an array
        except (TypeError, ValueError):
            return {"invalid": f"returned {scores!r:.100} of type {type(scores).__name__} for lists of one sample, not a list of one score (reward.reward_manager.name=batch)"}
        return judge(awaited(one))
    return judge(call(function, {"data_source": request["data_source"], "solution_str": request["solution_str"], "ground_truth": request["ground_truth"],
                                 "extra_info": request["extra_info"], **setup["kwargs"]}))


serve(load, score)
)python";

}  // namespace rl
