#include "rl/checkpoint/hash_note.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/support/temporary_folder.h"

namespace rl {
namespace {

namespace fs = std::filesystem;

std::string hash(char digit) { return std::string(32, digit); }

std::vector<fs::path> notes_in(const fs::path& folder) {
  std::vector<fs::path> notes;
  for (const auto& entry : fs::directory_iterator(folder))
    if (is_hash_note(entry.path())) notes.push_back(entry.path());
  return notes;
}

TEST(HashNote, AllWritersNotesAreTaken) {
  const support::TemporaryFolder folder;
  const fs::path file = folder.file("model.safetensors");
  ASSERT_TRUE(write_hash_note(file, {1000, {{500, 700, hash('b')}, {900, 1000, hash('c')}}}).ok());
  ASSERT_TRUE(write_hash_note(file, {1000, {{0, 500, hash('a')}}}).ok());
  ASSERT_TRUE(write_hash_note(file, {1000, {}}).ok());  // which is none
  ASSERT_EQ(notes_in(folder.path()).size(), 2u);
  const HashNotes notes = HashNotes::take(notes_in(folder.path()));
  EXPECT_TRUE(notes_in(folder.path()).empty());
  EXPECT_EQ(
      notes.ranges_of(file, 1000),
      (std::vector<RangeHash>{{0, 500, hash('a')}, {500, 700, hash('b')}, {900, 1000, hash('c')}}));
  EXPECT_TRUE(notes.ranges_of(file, 1001).empty()) << "of a file of another size";
  EXPECT_TRUE(notes.ranges_of(folder.file("optimizer.safetensors"), 1000).empty());
}

TEST(HashNote, NotesThatContradictEachOtherAreNone) {
  const support::TemporaryFolder folder;
  const fs::path file = folder.file("f");
  ASSERT_TRUE(write_hash_note(file, {1000, {{0, 500, hash('a')}}}).ok());
  ASSERT_TRUE(write_hash_note(file, {1000, {{499, 1000, hash('b')}}}).ok());
  EXPECT_TRUE(HashNotes::take(notes_in(folder.path())).ranges_of(file, 1000).empty());
  ASSERT_TRUE(write_hash_note(file, {1000, {{0, 500, hash('a')}}}).ok());
  ASSERT_TRUE(write_hash_note(file, {2000, {{500, 1000, hash('b')}}}).ok());
  EXPECT_TRUE(HashNotes::take(notes_in(folder.path())).ranges_of(file, 1000).empty());
}

TEST(HashNote, OneThatCannotBeReadIsNotThere) {
  const support::TemporaryFolder folder;
  const fs::path file = folder.file("f");
  ASSERT_TRUE(write_hash_note(file, {1000, {{0, 500, hash('a')}}}).ok());
  std::ofstream(folder.file("f.hashes-0badcafe")) << "{\"format\": 1, \"byt";
  EXPECT_EQ(HashNotes::take(notes_in(folder.path())).ranges_of(file, 1000).size(), 1u);
  for (const char* text :
       {"", "[]", "{}", R"({"format":2,"bytes":9,"ranges":[]})",
        R"({"format":1,"bytes":-9,"ranges":[]})", R"({"format":1,"bytes":9,"ranges":[[0,9]]})",
        R"({"format":1,"bytes":9,"ranges":[[0,9,"short"]]})",
        R"({"format":1,"bytes":9,"ranges":[[5,5,"00000000000000000000000000000000"]]})",
        R"({"format":1,"bytes":9,"ranges":[[0,10,"00000000000000000000000000000000"]]})"})
    EXPECT_FALSE(parse_hash_note(text).ok()) << text;
  EXPECT_EQ(parse_hash_note(R"({"format":1,"bytes":9,"ranges":[]})")->bytes, 9u);
}

TEST(HashNote, OtherNamesAreNoNotes) {
  EXPECT_TRUE(is_hash_note("/x/model.safetensors.hashes-0badcafe"));
  for (const char* name : {"model.safetensors", ".hashes-0badcafe", "m.hashes-0badcaf",
                           "m.hashes-0badcafe0", "m.hashes-0badcafX", "hashes-0badcafe"})
    EXPECT_FALSE(is_hash_note(name)) << name;
}

}  // namespace
}  // namespace rl
