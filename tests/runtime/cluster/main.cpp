// The test program is also the program that its workers run. With an argument it is the load on a
// cluster, or it looks at what is left.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>

#include <cstdlib>
#include <cstring>

#include "load.h"
#include "runtime/process/worker_environment.h"
#include "tests/support/temporary_folder.h"

int main(int argc, char** argv) {
  const char* role = argc > 1 ? argv[1] : "";
  if (std::strcmp(role, "--load") == 0) return runtime::test::run_load(argc, argv);
  if (std::strcmp(role, "--verify") == 0) return runtime::test::run_verify(argc, argv);
  if (std::strcmp(role, "--fill") == 0) return runtime::test::run_fill(argc, argv);
  if (runtime::is_worker_process()) {
    runtime::Runtime rt(argc, argv);
    runtime::test::register_load(rt);
    return rt.run([](runtime::Runtime&) { return 0; });
  }
  ::testing::InitGoogleTest(&argc, argv);
  // What tests mount goes with this process, however it ends. Where that is not allowed, nor are
  // mounts, and those tests say so.
  const bool may_mount = ::unshare(CLONE_NEWNS) == 0 &&
                         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  const support::TemporaryFolder folder;
  // Their own files lie in memory. How long a sync takes on a disk that others write to (seconds
  // were seen with a compiler) is not what is tested here. Full and failing disks have their own
  // tests, which make them.
  const bool in_memory =
      may_mount && ::mount("starling-tests", folder.path().c_str(), "tmpfs", 0, "mode=1777") == 0;
  if (in_memory) ::setenv("TMPDIR", folder.path().c_str(), 1);
  const int code = RUN_ALL_TESTS();
  if (in_memory) ::umount2(folder.path().c_str(), MNT_DETACH);
  return code;
}
