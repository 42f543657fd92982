// expect_failure(): expects a status of a code, with parts of its message.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/core/result.h"

namespace support {

inline void expect_failure(const runtime::Status& status, runtime::ErrorCode code,
                           const std::vector<std::string>& parts) {
  EXPECT_EQ(status.code(), code) << status.to_string();
  for (const std::string& part : parts)
    EXPECT_NE(status.message().find(part), std::string::npos)
        << part << " in: " << status.message();
}

}  // namespace support
