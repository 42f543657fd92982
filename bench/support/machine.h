// The machine that figures come from.
#pragma once

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

namespace bench {

/// The value of the first line "key ...: value" of a file of /proc.
inline std::string proc_value(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    auto at = line.find_first_not_of(" \t", line.find(':') + 1);
    return at == std::string::npos ? "" : line.substr(at);
  }
  return "";
}

inline nlohmann::ordered_json machine() {
  utsname name{};
  ::uname(&name);
  return {{"cpu", proc_value("/proc/cpuinfo", "model name")},
          {"cores", std::thread::hardware_concurrency()},
          {"memory", proc_value("/proc/meminfo", "MemTotal")},
          {"kernel", name.release}};
}

/// The commit of the working directory's checkout, with "+" behind it if there are changes;
/// "unknown" outside one.
inline std::string commit() {
  std::string said;
  if (FILE* pipe =
          ::popen("git describe --always --abbrev=12 --dirty=+ --exclude '*' 2>/dev/null", "r")) {
    for (int c; (c = std::fgetc(pipe)) != EOF && c != '\n';) said.push_back(static_cast<char>(c));
    ::pclose(pipe);
  }
  return said.empty() ? "unknown" : said;
}

}  // namespace bench
