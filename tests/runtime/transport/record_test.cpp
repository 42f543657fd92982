#include "runtime/transport/record.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace runtime {
namespace {

SymmetricKey key_of(unsigned char value) {
  SymmetricKey key;
  key.fill(std::byte{value});
  return key;
}

using Record = std::vector<std::byte>;

iovec piece_of(std::string& text) { return {text.data(), text.size()}; }

Record sealed(RecordCipher& cipher, std::string text) {
  Record record(text.size() + kRecordOverheadBytes);
  const iovec piece = piece_of(text);
  EXPECT_EQ(cipher.seal(std::span(&piece, 1), record), record.size());
  return record;
}

/// "<changed>" unless it opens.
std::string opened(RecordCipher& cipher, const Record& record) {
  auto size = RecordCipher::text_bytes(std::span(record).first<kRecordHeaderBytes>());
  EXPECT_TRUE(size.ok());
  std::string text(*size, '\0');
  const iovec piece = piece_of(text);
  return cipher.open(record, std::span(&piece, 1)) ? text : "<changed>";
}

TEST(RecordCipher, OpensWhatWasSealedInItsOrder) {
  RecordCipher seal(key_of(1), RecordCipher::Use::kSeal), open(key_of(1), RecordCipher::Use::kOpen);
  for (const std::string text : {"a", "hello", "another one"}) {
    const Record record = sealed(seal, text);
    EXPECT_EQ(record.size(), text.size() + kRecordOverheadBytes);
    EXPECT_EQ(opened(open, record), text);
  }
}

TEST(RecordCipher, DoesNotShowItsText) {
  RecordCipher seal(key_of(1), RecordCipher::Use::kSeal);
  const std::string name(64, 'n');
  const Record record = sealed(seal, name);
  const std::string raw(reinterpret_cast<const char*>(record.data()), record.size());
  EXPECT_EQ(raw.find("nnn"), std::string::npos);
  EXPECT_NE(record, sealed(seal, name));  // nor that it is the same text
}

TEST(RecordCipher, RefusesEachByteThatWasChanged) {
  const std::string text = "the answer";
  for (std::size_t at = kRecordHeaderBytes; at < text.size() + kRecordOverheadBytes; ++at) {
    RecordCipher seal(key_of(1), RecordCipher::Use::kSeal),
        open(key_of(1), RecordCipher::Use::kOpen);
    Record record = sealed(seal, text);
    record[at] ^= std::byte{1};
    EXPECT_EQ(opened(open, record), "<changed>") << at;
  }
}

TEST(RecordCipher, RefusesRecordsThatAreRepeatedLeftOutOrOfAnotherDirection) {
  RecordCipher seal(key_of(1), RecordCipher::Use::kSeal);
  const Record first = sealed(seal, "one"), second = sealed(seal, "two");
  RecordCipher repeats(key_of(1), RecordCipher::Use::kOpen);
  EXPECT_EQ(opened(repeats, first), "one");
  EXPECT_EQ(opened(repeats, first), "<changed>");
  RecordCipher skips(key_of(1), RecordCipher::Use::kOpen);
  EXPECT_EQ(opened(skips, second), "<changed>");
  RecordCipher other_direction(key_of(2), RecordCipher::Use::kOpen);
  EXPECT_EQ(opened(other_direction, first), "<changed>");
}

TEST(RecordCipher, RefusesATextThatWasCutOrGrown) {
  RecordCipher seal(key_of(1), RecordCipher::Use::kSeal), open(key_of(1), RecordCipher::Use::kOpen);
  Record record = sealed(seal, "twelve bytes");
  record.erase(record.begin() + kRecordHeaderBytes);
  record[0] = std::byte{11};
  EXPECT_EQ(opened(open, record), "<changed>");
}

TEST(RecordCipher, RefusesSizesThatNoRecordHas) {
  const auto size_of = [](std::uint32_t stated) {
    std::array<std::byte, kRecordHeaderBytes> header;
    std::memcpy(header.data(), &stated, sizeof stated);
    return RecordCipher::text_bytes(header);
  };
  EXPECT_EQ(size_of(0).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(size_of(kRecordTextMax + 1).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(*size_of(1), 1u);
  EXPECT_EQ(*size_of(kRecordTextMax), kRecordTextMax);
}

TEST(RecordCipher, ChangesItsKeyAfterNRecords) {
  RecordCipher seal(key_of(1), RecordCipher::Use::kSeal, 3);
  RecordCipher open(key_of(1), RecordCipher::Use::kOpen, 3);
  RecordCipher keeps(key_of(1), RecordCipher::Use::kOpen);
  for (int i = 0; i < 10; ++i) {
    const std::string text = "record " + std::to_string(i);
    const Record record = sealed(seal, text);
    EXPECT_EQ(opened(open, record), text);
    EXPECT_EQ(opened(keeps, record), i < 3 ? text : "<changed>");
  }
}

TEST(RecordCipher, TakesItsTextInPieces) {
  std::mt19937 random(3);
  RecordCipher seal(key_of(1), RecordCipher::Use::kSeal), open(key_of(1), RecordCipher::Use::kOpen);
  for (int round = 0; round < 50; ++round) {
    std::string text(1 + random() % 5000, '\0');
    for (char& c : text) c = static_cast<char>(random());
    const auto cut = [&random](std::string& bytes) {
      std::vector<iovec> pieces;
      for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t size = std::min<std::size_t>(1 + random() % 700, bytes.size() - at);
        pieces.push_back({bytes.data() + at, size});
        at += size;
      }
      return pieces;
    };
    Record record(text.size() + kRecordOverheadBytes);
    seal.seal(cut(text), record);
    std::string back(text.size(), '\0');
    ASSERT_TRUE(open.open(record, cut(back)));
    EXPECT_EQ(back, text);
  }
}

}  // namespace
}  // namespace runtime
