"""The protocol of ProcessPool over descriptors 3 and 4: every Python worker begins with it.

Programs follow it in the same module. They use connection, requests, answer(), trace() and
serve(load, handle).
"""

import fcntl
import json
import os
import resource
import signal
import socket
import sys

sys.dont_write_bytecode = True  # nothing is left next to a user's files


def connect(line=3, life=4):
    """Takes up two descriptors under other numbers, which programs that are started do not get.

    When the process that started this one is gone, the kernel ends the group by SIGIO, whatever
    Python is doing.
    """
    global connection, requests, owner
    # By which what the user's code starts is found.
    os.environ["STARLING_SCORER"] = str(os.getpid())
    fcntl.fcntl(life, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(life, fcntl.F_SETFL, os.O_ASYNC)
    moved, owner = [
        fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 64 + os.urandom(1)[0] % 128)
        for descriptor in (line, life)
    ]
    for descriptor in (line, life):
        os.close(descriptor)
    connection = socket.socket(fileno=moved)
    requests = connection.makefile("r", encoding="utf-8", newline="\n")


def end_children():
    """Kills the children of this process until it has none.

    The children of a child that dies become this process's children.
    """
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
    """Goes on in a child; this process stays its parent and never returns.

    Orphans below become children of this process, so that it finds them whatever session and
    environment they have. When the child has ended, it ends what is left, and then as the child
    did.
    """
    try:
        import ctypes

        set_child_subreaper = 36
        arguments = (ctypes.c_ulong(value) for value in (1, 0, 0, 0))
        subreaper = ctypes.CDLL(None).prctl(set_child_subreaper, *arguments)
    except Exception:
        return  # no ctypes: orphans are found by their environment alone
    child = os.fork() if subreaper == 0 else 0
    if child == 0:
        return
    for number in (
        signal.SIGIO,
        signal.SIGHUP,
        signal.SIGINT,
        signal.SIGQUIT,
        signal.SIGTERM,
        signal.SIGUSR1,
        signal.SIGUSR2,
    ):
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
    """A function that makes a process like this one; the new process gets 0 from it.

    The copy is a sibling, so that the process that started this one is notified of its end.
    None where copying is not safe: what the file imported may have started threads or opened
    connections, which copies cannot share.
    """
    number = {"x86_64": 56, "aarch64": 220}.get(os.uname().machine)
    try:
        import ctypes

        if (
            number is None
            or not hasattr(socket, "recv_fds")
            or len(os.listdir("/proc/self/task")) != 1
        ):
            return None
        opened = [
            os.readlink(f"/proc/self/fd/{name}")
            for name in os.listdir("/proc/self/fd")
            if int(name) not in (0, 1, 2, connection.fileno(), owner)
            and os.path.exists(f"/proc/self/fd/{name}")
        ]
        if any(target.startswith(("socket:", "pipe:", "anon_inode:")) for target in opened):
            return None
        library, python = ctypes.PyDLL(None, use_errno=True), ctypes.pythonapi
        library.syscall.restype = ctypes.c_long
    except Exception:
        return None
    flags = 0x8000 | signal.SIGCHLD  # CLONE_PARENT

    def clone():
        python.PyOS_BeforeFork()
        child = library.syscall(
            ctypes.c_long(number),
            ctypes.c_long(flags),
            ctypes.c_long(0),
            ctypes.c_long(0),
            ctypes.c_long(0),
            ctypes.c_long(0),
        )
        if child == 0:
            python.PyOS_AfterFork_Child()
        else:
            python.PyOS_AfterFork_Parent()
        return child

    return clone


def forget_chance():
    """Seeds generators again: copies shall not draw the same random numbers."""
    for name, module in (
        ("random", sys.modules.get("random")),
        ("numpy.random", sys.modules.get("numpy.random")),
    ):
        if module is not None:
            module.seed()


def make_copies(clone):
    """Makes a copy for each message on the connection, which brings the copy's descriptors.

    Returns in the copies; ends this process with the connection.
    """
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
        hard = resource.getrlimit(resource.RLIMIT_AS)[
            1
        ]  # may be lower already, and cannot be raised
        most = (
            setup["memory_bytes"]
            if hard == resource.RLIM_INFINITY
            else min(hard, setup["memory_bytes"])
        )
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def serve(load, handle):
    """Loads once, then answers requests until the connection ends.

    load(setup) returns what is loaded, or None, and what is wrong with it.
    handle(setup, loaded, request) returns an answer, or raises.
    """
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
