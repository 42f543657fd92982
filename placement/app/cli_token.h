// `starling token`.
#pragma once

#include <string>

namespace placement {

struct TokenCommandOptions {
  std::string address;
  bool submitter = false;  // one that lets its holder submit jobs to a node of root, and no more
  bool change = false;     // the cluster gets another one
  std::string file;        // that has it; empty: 256 random bits
  std::string grace;       // how long the present one counts still
};

/// Prints the cluster's token, or one for submitters; having changed it first, if asked. Returns
/// the exit code.
int token_command(const TokenCommandOptions& options);

}  // namespace placement
