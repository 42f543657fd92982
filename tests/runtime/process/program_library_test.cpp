#include "runtime/process/program_library.h"

#include <gtest/gtest.h>

namespace runtime {
namespace {

TEST(ProgramLibrary, IsLeftToTheLoaderWhereTheProgramHasNone) {
  EXPECT_EQ(program_library("libno_such_library.so"), "libno_such_library.so");
}

}  // namespace
}  // namespace runtime
