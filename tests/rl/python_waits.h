// Wait functions for Python code of tests.
#pragma once

#include <string>

namespace rl {

/// Goes in front of a test's module:
///   wait_until(condition)   waits for what another process brings about
///   wait_for_file(path)     for a marker of the test: a gate that it opens
///   hang()                  never returns
inline const std::string kPythonWaits = R"python(
import os, threading, time

def wait_until(condition):
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end, "what was waited for did not happen"
        time.sleep(0.002)

def wait_for_file(path):
    wait_until(lambda: os.path.exists(path))

def hang():
    threading.Event().wait()

)python";

}  // namespace rl
