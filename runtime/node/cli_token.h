// `starling token`.
#pragma once

#include <string>

namespace runtime {

/// Prints the cluster's token, or (`submitter`) one that lets its holder submit jobs to a node of
/// root and nothing else. Returns the exit code.
int token_command(const std::string& address, bool submitter);

}  // namespace runtime
