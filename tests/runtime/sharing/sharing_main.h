// A test program that is also the program that its workers run, and with an argument another driver
// next to the test.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "runtime/process/worker_environment.h"
#include "tests/runtime/sharing/sharing_actors.h"

namespace runtime::test {

/// Publishes three versions in a namespace that it shares with others, and ends.
inline int run_publisher(int argc, char** argv) {
  RuntimeOptions options;
  options.name_space = "shared";
  Runtime rt(argc, argv, options);
  register_sharing_actors(rt);
  return rt.run([](Runtime& driver) -> Status {
    for (std::uint64_t version : {1, 2, 3}) {
      auto ref = driver.put(numbers(version, 1 << 19));
      if (!ref.ok()) return ref.status();
      if (Status status = driver.published().publish("weights", version, *ref); !status.ok())
        return status;
    }
    return {};
  });
}

/// `--lender NAME SEED`: gives the keeper of that name an object, and waits to be killed.
inline int run_lender(int argc, char** argv) {
  const std::string name = argc > 3 ? argv[2] : "";
  const std::uint64_t seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0;
  RuntimeOptions options;
  options.name_space = "shared";
  Runtime rt(argc, argv, options);
  register_sharing_actors(rt);
  return rt.run([&](Runtime& driver) -> Status {
    auto keeper = driver.get_actor<Keeper>(name);
    if (!keeper.ok()) return keeper.status();
    auto ref = driver.put(numbers(seed, 1 << 19));
    if (!ref.ok()) return ref.status();
    Parcel parcel;
    parcel.list.push_back({seed, *ref});
    if (Status status = driver.get(keeper->call(&Keeper::keep, parcel)); !status.ok())
      return status;
    std::printf("lent\n");
    std::fflush(stdout);
    ::pause();
    return {};
  });
}

inline bool is_program(int argc, char** argv, const char* name) {
  return argc > 1 && std::strcmp(argv[1], name) == 0;
}

inline int sharing_main(int argc, char** argv) {
  if (!is_worker_process() && is_program(argc, argv, "--publisher"))
    return run_publisher(argc, argv);
  if (!is_worker_process() && is_program(argc, argv, "--lender")) return run_lender(argc, argv);
  if (is_worker_process()) {
    Runtime rt(argc, argv);
    register_sharing_actors(rt);
    return rt.run([](Runtime&) { return 0; });
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace runtime::test
