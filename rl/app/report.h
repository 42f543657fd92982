// starling report: a run as one HTML page.
#pragma once

namespace rl {

/// Exit code 0 when the page is written, 1 when the run cannot be read, 2 for a mistaken command
/// line.
int report_command(int argc, char** argv);

}  // namespace rl
