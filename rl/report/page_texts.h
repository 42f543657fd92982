// The parts of pages besides their HTML: the .css and .js files of this folder.
#pragma once

namespace rl {

extern const char* const kStyle;

/// Buttons of a report choose what the colours of tokens show.
extern const char* const kReportScript;

/// Buttons of an evaluation choose which prompts are shown.
extern const char* const kEvaluationScript;

}  // namespace rl
