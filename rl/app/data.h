// starling data head|stats|convert: what is in data files, and from one form into another.
#pragma once

namespace rl {

/// Exit code 0, 1 when a file cannot be read or written, 2 for a mistaken command line.
int data_command(int argc, char** argv);

}  // namespace rl
