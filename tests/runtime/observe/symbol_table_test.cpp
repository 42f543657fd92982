// Symbols of files that are whole, cut, replaced in the middle of reading, or none at all.
#include "runtime/observe/symbol_table.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

extern "C" void starling_symbol_landmark() { asm volatile("nop; nop"); }

namespace runtime {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> functions_of(const SymbolTable& table) {
  std::vector<std::string> names;
  table.for_each_function([&](std::uintptr_t, std::size_t, SymbolTable::NamePlace place) {
    names.push_back(table.name(place));
  });
  return names;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TEST(SymbolTable, FindsTheFunctionsOfAProgram) {
  const SymbolTable table("/proc/self/exe");
  std::uintptr_t landmark = 0;
  table.for_each_function(
      [&](std::uintptr_t start, std::size_t size, SymbolTable::NamePlace place) {
        char cut[10];
        table.copy_name(place, cut);
        if (std::string(cut) != "starling_" || table.name(place) != "starling_symbol_landmark")
          return;
        landmark = start;
        EXPECT_GT(size, 0u);
      });
  EXPECT_NE(landmark, 0u);
  EXPECT_TRUE(table.address_of(0).has_value());
  EXPECT_FALSE(table.address_of(UINT64_MAX).has_value());
}

TEST(SymbolTable, WhatIsNoProgramHasNone) {
  support::TemporaryFolder folder;
  std::ofstream(folder.file("text")) << "no ELF";
  std::ofstream(folder.file("empty"));
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  for (const std::string& path :
       {folder.file("text"), folder.file("empty"), folder.file("pipe"), folder.file("missing"),
        folder.path().string(), std::string("/dev/zero")}) {
    const SymbolTable table(path.c_str());
    EXPECT_TRUE(functions_of(table).empty()) << path;
    EXPECT_FALSE(table.address_of(0).has_value()) << path;
  }
}

// With a mapping, each of these was a SIGBUS.
TEST(SymbolTable, SurvivesAFileThatIsCutOrOverwrittenWhileItIsRead) {
  support::TemporaryFolder folder;
  const std::string copy = folder.file("program");
  fs::copy_file("/proc/self/exe", copy);
  const auto whole = fs::file_size(copy);
  const SymbolTable table(copy.c_str());
  ASSERT_TRUE(has(functions_of(table), "starling_symbol_landmark"));
  std::size_t seen = 0, names = 0;
  table.for_each_function([&](std::uintptr_t, std::size_t, SymbolTable::NamePlace place) {
    if (++seen == 300) fs::resize_file(copy, 4096);
    names += table.name(place).empty() ? 0 : 1;
  });
  EXPECT_GE(seen, 300u);
  EXPECT_LT(seen, 1000u) << "the rest of the file is gone";
  EXPECT_LE(names, 300u);
  EXPECT_TRUE(functions_of(table).empty());
  fs::resize_file(copy, 0);
  EXPECT_FALSE(table.address_of(0).has_value());
  // The same length, and nothing of what it was.
  std::ofstream(copy, std::ios::binary) << std::string(whole, '\xff');
  (void)functions_of(table);
  // Cut before: at each place something else is missing.
  for (const std::uintmax_t size : {whole / 2, std::uintmax_t{4096}, std::uintmax_t{64},
                                    std::uintmax_t{63}, std::uintmax_t{5}}) {
    fs::copy_file("/proc/self/exe", copy, fs::copy_options::overwrite_existing);
    fs::resize_file(copy, size);
    const SymbolTable cut(copy.c_str());
    (void)functions_of(cut);
    (void)cut.address_of(0x1000);
  }
}

}  // namespace
}  // namespace runtime
