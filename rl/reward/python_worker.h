// The Python program that a scoring process runs.
#pragma once

namespace rl {

/// Given to python3 -c. Speaks the protocol of ProcessPool over descriptor 3, loads the user's file once and calls its function per request.
extern const char* const kPythonWorker;

}  // namespace rl
