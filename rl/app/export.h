// `starling export`: a checkpoint, or any model we can read, as a Hugging Face folder.
#pragma once

namespace rl {

/// argv[0] is the command's name. Writes the folder next to its final place and renames it when it
/// has been read back equal, so
/// --out is whole or not there. Prints one JSON line about what was written.
/// Exit codes: 0 done, 1 failed (said on stderr), 2 usage.
int export_command(int argc, char** argv);

}  // namespace rl
