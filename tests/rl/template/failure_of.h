// The failure of a part of the template language, as a status.
#pragma once

#include <utility>

#include "rl/template/failure.h"
#include "runtime/core/status.h"

namespace rl::testing {

/// What `step` fails with; ok where it does not.
template <class Step>
runtime::Status template_failure(Step&& step) {
  try {
    std::forward<Step>(step)();
    return {};
  } catch (const TemplateFailure& failure) {
    return failure.status;
  }
}

}  // namespace rl::testing
