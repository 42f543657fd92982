// `starling pipeline`: stages in order, each with what the ones before it made.
#pragma once

namespace rl {

/// argv[0] is the command's name. Runs each stage as a separate `starling` command. Stages that are
/// complete are not run again. One that was cut off continues from its checkpoint. Exit codes: 0
/// done, 1 failed (said on stderr), 2 usage.
int pipeline_command(int argc, char** argv);

}  // namespace rl
