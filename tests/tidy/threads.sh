#!/usr/bin/env bash
# Threads are made by runtime/core/thread.h, which gives a typed error where the machine has no room for one: std::thread would throw, and end the program.
set -uo pipefail
cd "${1:?source folder}" || exit 1
found=$(grep -rnE --include='*.h' --include='*.cpp' 'std::(thread|jthread)\b|std::async\(std::launch::async,|asio::thread_pool|pthread_create' runtime rl placement \
  | grep -vE 'std::thread::(id|hardware_concurrency)|^runtime/core/thread\.(h|cpp):|#include')
[ -z "$found" ] || { echo "$found"; echo '  ^ make it with Thread::start() or HelperThreads of runtime/core/thread.h'; exit 1; }
