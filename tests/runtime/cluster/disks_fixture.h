// Small disks.
#pragma once

#include <sys/mount.h>

#include <fstream>
#include <string>

#include "fixture.h"

namespace runtime::test {

class DisksTest : public NetworkTest {
 protected:
  /// A file system of its own of so many bytes; false where none can be mounted.
  bool mount_small(const std::filesystem::path& where, const std::string& size) {
    std::filesystem::create_directories(where);
    mounted_ = where;
    return ::mount("tmpfs", where.c_str(), "tmpfs", 0, ("size=" + size + ",mode=0700").c_str()) == 0;
  }
  /// Takes all that is free there.
  static void fill(const std::filesystem::path& folder) {
    std::ofstream file(folder / "filler", std::ios::binary);
    const std::string block(4096, 'f');
    while (file.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  void TearDown() override {
    NetworkTest::TearDown();
    if (!mounted_.empty()) ::umount2(mounted_.c_str(), MNT_DETACH);
  }

  std::filesystem::path mounted_;
};

}  // namespace runtime::test
