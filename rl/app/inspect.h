// starling inspect: what a model is, what it takes, and what of it is not supported.
#pragma once

namespace rl {

/// Reads headers alone: no weight is loaded. Exit code 0 when the model can be used as it is, 1
/// when something keeps it from that (each told), 2 for a mistaken command line.
int inspect_command(int argc, char** argv);

}  // namespace rl
