// Small disks.
#pragma once

#include <sys/mount.h>

#include <string>

#include "fixture.h"

namespace runtime::test {

class DisksTest : public NetworkTest {
 protected:
  /// A separate file system of this size; false where none can be mounted.
  bool mount_small(const std::filesystem::path& where, const std::string& size) {
    std::filesystem::create_directories(where);
    mounted_ = where;
    return ::mount("tmpfs", where.c_str(), "tmpfs", 0, ("size=" + size + ",mode=0700").c_str()) ==
           0;
  }
  void TearDown() override {
    NetworkTest::TearDown();
    if (!mounted_.empty()) ::umount2(mounted_.c_str(), MNT_DETACH);
  }

  std::filesystem::path mounted_;
};

}  // namespace runtime::test
