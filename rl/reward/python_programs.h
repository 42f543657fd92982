// The Python programs that scorers run: the .py files of this folder.
#pragma once

namespace rl {

/// What every child program of Python begins with: the protocol of ProcessPool over the descriptors
/// 3 and 4, and serve(load, handle). A program is given to python3 -c behind it.
extern const char* const kPythonServer;

/// Loads the user's file once and calls its function per request.
extern const char* const kPythonScorer;

/// Around an answer that is one function, for a sandbox. First come the names that answers use
/// without importing them. Then, behind `_NAME = "..."`, comes a call with arguments from standard
/// input.
extern const char* const kAnswerImports;
extern const char* const kCallFunction;

}  // namespace rl
