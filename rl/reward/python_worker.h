// The Python programs that child processes run.
#pragma once

namespace rl {

/// What every child program of Python has: the protocol of ProcessPool, over what is descriptor 3
/// when it starts, and serve(load, handle). A program is given to python3 -c behind it.
extern const char* const kPythonServer;

/// Loads the user's file once and calls its function per request.
extern const char* const kPythonScorer;

}  // namespace rl
