// starling inspect: what a model is, what it takes, and what of it is not supported.
#pragma once

namespace rl {

/// Reads headers alone: no weight is loaded. Exit code 0: the model can be used as it is. Exit code
/// 1: something keeps it from that (each is told). Exit code 2: a mistaken command line.
int inspect_command(int argc, char** argv);

}  // namespace rl
