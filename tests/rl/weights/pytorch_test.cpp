#include "rl/weights/pytorch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rl/weights/state_dict.h"
#include "rl/weights/zip_directory.h"
#include "test_files.h"

namespace rl {
namespace {

using nlohmann::json;
using runtime::ErrorCode;
using runtime::Status;
using testing::raw;
using testing::TempFolder;

std::filesystem::path file_of(const std::string& name) {
  return STARLING_SOURCE_DIR "/tests/rl/weights/pytorch/" + name;
}

// dtype names of torch as ours.
std::string our_name(const std::string& dtype) {
  if (dtype == "bfloat16") return "BF16";
  if (dtype == "bool") return "BOOL";
  const std::size_t digits = dtype.find_first_of("0123456789");
  const std::string kind = dtype.starts_with("float") ? "F" : dtype.starts_with("uint") ? "U" : "I";
  return kind + dtype.substr(digits);
}

// ---- what torch.save wrote ----

class PytorchFile : public ::testing::TestWithParam<const char*> {};

TEST_P(PytorchFile, HoldsWhatTorchSaved) {
  const json expected = json::parse(testing::read_file(file_of("expected.json")))[GetParam()];
  auto source = open_pytorch(file_of(GetParam()));
  ASSERT_TRUE(source.ok()) << source.status().to_string();
  EXPECT_EQ((*source)->tensors().size(), expected.size());
  for (const auto& [name, tensor] : expected.items()) {
    const TensorInfo* info = (*source)->find(name);
    ASSERT_NE(info, nullptr) << name;
    EXPECT_EQ(info->shape, tensor["shape"].get<std::vector<std::int64_t>>()) << name;
    EXPECT_EQ(dtype_name(info->dtype), our_name(tensor["dtype"])) << name;
    std::vector<float> wanted;
    for (const json& value : tensor["values"])
      wanted.push_back(static_cast<float>(value.get<double>()));
    std::vector<float> got(wanted.size(), NAN);
    ASSERT_TRUE((*source)->read_f32(name, got).ok()) << name;
    EXPECT_EQ(got, wanted) << name;
    // Every part alone, too.
    for (std::size_t first = 0; first < wanted.size(); ++first) {
      std::vector<float> part(wanted.size() - first, NAN);
      ASSERT_TRUE((*source)->read_f32_range(name, static_cast<std::int64_t>(first), part).ok())
          << name;
      EXPECT_TRUE(
          std::equal(part.begin(), part.end(), wanted.begin() + static_cast<std::ptrdiff_t>(first)))
          << name << " from " << first;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, PytorchFile,
                         ::testing::Values("tensors.bin", "module.bin", "protocol4.bin",
                                           "protocol5.bin", "shard1.bin"),
                         [](const auto& test) {
                           const std::string name = test.param;
                           return name.substr(0, name.find('.'));
                         });

TEST(Pytorch, FolderIsTakenWhereThereIsNoSafetensors) {
  TempFolder folder;
  folder.write("pytorch_model.bin", testing::read_file(file_of("shard1.bin")));
  auto source = open_weights(folder.path());
  ASSERT_TRUE(source.ok()) << source.status().to_string();
  EXPECT_NE((*source)->find("a"), nullptr);
  folder.write("model.safetensors", "damaged");  // preferred all the same
  EXPECT_NE(open_weights(folder.path()).status().message().find("model.safetensors"),
            std::string::npos);
}

TEST(Pytorch, ShardsAreOneSource) {
  TempFolder folder;
  for (const char* shard : {"shard1.bin", "shard2.bin"})
    folder.write(shard, testing::read_file(file_of(shard)));
  folder.write(
      "pytorch_model.bin.index.json",
      R"({"metadata":{"total_size":20},"weight_map":{"a":"shard1.bin","b":"shard2.bin","c":"shard2.bin"}})");
  auto source = open_weights(folder.path());
  ASSERT_TRUE(source.ok()) << source.status().to_string();
  ASSERT_EQ((*source)->tensors().size(), 3U);
  std::vector<float> b(2);
  ASSERT_TRUE((*source)->read_f32("b", b).ok());
  EXPECT_EQ(b, (std::vector<float>{3, 4}));

  folder.write("pytorch_model.bin.index.json",
               R"({"weight_map":{"a":"shard1.bin","b":"shard3.bin"}})");
  const Status missing = open_weights(folder.path()).status();
  EXPECT_EQ(missing.code(), ErrorCode::kNotFound);
  EXPECT_NE(missing.message().find("shard3.bin"), std::string::npos) << missing.message();
  folder.write("pytorch_model.bin.index.json",
               R"({"weight_map":{"a":"shard1.bin","b":"shard1.bin"}})");
  EXPECT_NE(open_weights(folder.path()).status().message().find("first b"), std::string::npos);
}

// ---- what is refused ----

struct Refused {
  const char* file;
  const char* mentions;
};

class PytorchRefused : public ::testing::TestWithParam<Refused> {};

TEST_P(PytorchRefused, IsNamedWithTheCure) {
  const auto source = open_pytorch(file_of(GetParam().file));
  ASSERT_FALSE(source.ok());
  const std::string& message = source.status().message();
  EXPECT_NE(message.find(GetParam().mentions), std::string::npos) << message;
  EXPECT_NE(message.find(GetParam().file), std::string::npos) << message;
  EXPECT_TRUE(message.find("save") != std::string::npos ||
              message.find("fetch") != std::string::npos)
      << message;
}

INSTANTIATE_TEST_SUITE_P(
    All, PytorchRefused,
    ::testing::Values(Refused{"refused_legacy.bin", "before version 1.6"},
                      Refused{"refused_code.bin", "posix.system"},
                      Refused{"refused_module.bin", "Module"},
                      Refused{"refused_nested.bin", "entry model is no tensor"},
                      Refused{"refused_list.bin", "state dict"},
                      Refused{"refused_tensor.bin", "a tensor"},
                      Refused{"refused_float8.bin", "torch.float8_e4m3fn"},
                      Refused{"refused_sparse.bin", "torch._utils._rebuild_sparse_tensor"},
                      Refused{"refused_complex.bin", "torch.ComplexFloatStorage"},
                      Refused{"refused_expanded.bin", "more elements than its storage of 1"},
                      Refused{"refused_compressed.bin", "compressed"}),
    [](const auto& test) {
      const std::string name = test.param.file;
      return name.substr(8, name.find('.') - 8);
    });

TEST(Pytorch, WhatIsNoArchiveIsSaid) {
  TempFolder folder;
  EXPECT_EQ(open_pytorch(folder.path()).status().code(), ErrorCode::kNotFound);
  EXPECT_NE(open_pytorch(folder.write("lfs.bin", "version https://git-lfs.github.com/spec/v1\noid"))
                .status()
                .message()
                .find("git lfs pull"),
            std::string::npos);
  EXPECT_EQ(open_pytorch(folder.write("text.bin", "hello")).status().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(open_pytorch(folder.write("empty.bin", "")).status().code(),
            ErrorCode::kInvalidArgument);
}

// ---- files that lie ----

Status parse_pytorch(const std::string& bytes) {
  return read_pytorch_tensors(std::as_bytes(std::span(bytes)), "m.bin").status();
}

TEST(PytorchDamage, EveryTruncationIsAnError) {
  const std::string whole = testing::read_file(file_of("module.bin"));
  ASSERT_TRUE(parse_pytorch(whole).ok());
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parse_pytorch(whole.substr(0, size)).ok()) << size;
}

TEST(PytorchDamage, AnyByteMayBeWrong) {
  const std::string whole = testing::read_file(file_of("module.bin"));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ change);
      auto tensors = read_pytorch_tensors(std::as_bytes(std::span(bytes)), "m.bin");
      if (!tensors.ok()) continue;
      for (std::size_t i = 0; i < tensors->infos.size(); ++i)
        EXPECT_LE(tensors->bytes[i].data.size(), bytes.size());
    }
  }
}

// A pickle by hand: protocol 2, a dict of one tensor "a".
struct PickleText {
  std::string type = "FloatStorage";
  std::string key = "0";
  std::int32_t storage_count = 4;
  std::int32_t offset = 0;
  std::vector<std::int32_t> shape = {4};
  std::vector<std::int32_t> strides = {1};
  std::string before = "";  // instructions before the dict

  static std::string text(const std::string& value) {
    return "X" + raw(static_cast<std::uint32_t>(value.size())) + value;
  }
  static std::string integer(std::int32_t value) { return "J" + raw(value); }
  static std::string tuple(const std::vector<std::int32_t>& values) {
    std::string out = "(";
    for (const std::int32_t value : values) out += integer(value);
    return out + "t";
  }
  std::string bytes() const {
    return "\x80\x02" + before + "}" + text("a") + "ctorch._utils\n_rebuild_tensor_v2\n((" +
           text("storage") + "ctorch\n" + type + "\n" + text(key) + text("cpu") +
           integer(storage_count) + "tQ" + integer(offset) + tuple(shape) + tuple(strides) +
           "\x89}tRs.";
  }
};

runtime::Result<std::vector<PickledTensor>> parse_pytorch(const PickleText& pickle) {
  const std::string bytes = pickle.bytes();
  return parse_state_dict(std::as_bytes(std::span(bytes)), "m.bin");
}

TEST(StateDict, HandmadePickleIsTheBaseline) {
  const auto tensors = parse_pytorch(PickleText{.offset = 1, .shape = {3}});
  ASSERT_TRUE(tensors.ok()) << tensors.status().to_string();
  ASSERT_EQ(tensors->size(), 1U);
  EXPECT_EQ((*tensors)[0].info, (TensorInfo{"a", {3}, DType::kF32}));
  EXPECT_EQ((*tensors)[0].offset, 1);
}

TEST(StateDict, ViewsBeyondTheirStorageAreErrors) {
  constexpr std::int32_t kMax = INT32_MAX;
  for (const PickleText& bad :
       {PickleText{.shape = {5}}, PickleText{.offset = 1}, PickleText{.offset = -1, .shape = {1}},
        PickleText{.shape = {2}, .strides = {4}}, PickleText{.shape = {2}, .strides = {-1}},
        PickleText{.shape = {-4}}, PickleText{.shape = {4}, .strides = {0, 0}},
        PickleText{.shape = {kMax, kMax, kMax}, .strides = {kMax, kMax, kMax}},
        PickleText{.shape = {kMax, kMax, kMax, 0}, .strides = {0, 0, 0, 0}},
        PickleText{.storage_count = -1}, PickleText{.shape = {kMax}, .strides = {0}}}) {
    const auto tensors = parse_pytorch(bad);
    EXPECT_EQ(tensors.status().code(), ErrorCode::kInvalidArgument) << tensors.status().to_string();
  }
  EXPECT_TRUE(parse_pytorch(PickleText{.offset = 4, .shape = {0}}).ok());
  EXPECT_TRUE(parse_pytorch(PickleText{.shape = {2, 2}, .strides = {0, 1}})
                  .ok());  // repeats, but is no larger than its storage
}

TEST(StateDict, OtherInstructionsAndNamesAreRefusedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {"cos\nsystem\n0", "os.system"},
      {"cbuiltins\neval\n0", "builtins.eval"},
      {"ctorch\nload\n0", "torch.load"},
      {"(i", "0x69"},
      {"\x81", "0x81"},
      {"c__builtin__\ngetattr\n0", "__builtin__.getattr"},
      {"\x82\x01", "0x82"},
      {"P0\n", "0x50"},
      {"ccollections\nOrderedDict\n(]tR0", "OrderedDict"},
  };
  for (const auto& [instructions, mentions] : cases) {
    const Status status = parse_pytorch(PickleText{.before = instructions}).status();
    EXPECT_EQ(status.code(), ErrorCode::kUnimplemented)
        << instructions << ": " << status.to_string();
    EXPECT_NE(status.message().find(mentions), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("save model.state_dict()"), std::string::npos)
        << status.message();
  }
}

TEST(StateDict, MisuseOfTheStackAndTheMemoIsAnError) {
  for (const char* bad : {"h\x07", "q\x01", "0", "t", "u", "\x85", "R", "b", "Q", "s", "a",
                          "(h\x07", "}(\x88u0", "]\x88s", "(0\x85"}) {
    EXPECT_EQ(parse_pytorch(PickleText{.before = bad}).status().code(), ErrorCode::kInvalidArgument)
        << bad;
  }
  EXPECT_EQ(parse_pytorch(PickleText{.before = "r" + raw(~std::uint32_t{0})}).status().code(),
            ErrorCode::kInvalidArgument);  // nothing to remember
  EXPECT_TRUE(parse_pytorch(PickleText{.before = "]r" + raw(~std::uint32_t{0}) + "0"})
                  .ok());  // a huge index costs nothing
  EXPECT_EQ(parse_pytorch(PickleText{.before = "X" + raw(~std::uint32_t{0})}).status().code(),
            ErrorCode::kInvalidArgument);
}

TEST(StateDict, StackAndLengthAreBounded) {
  EXPECT_NE(parse_pytorch(PickleText{.before = std::string((1 << 20) + 1, 'N')})
                .status()
                .message()
                .find("stacks up"),
            std::string::npos);
  std::string work;
  while (work.size() < (std::size_t{33} << 20)) work += "N0N0N0N0";
  EXPECT_NE(parse_pytorch(PickleText{.before = std::move(work)})
                .status()
                .message()
                .find("too many instructions"),
            std::string::npos);
}

TEST(StateDict, SelfReferencesCostNoRecursion) {
  EXPECT_TRUE(parse_pytorch(PickleText{.before = "]q\x01h\x01"
                                                 "a0"})
                  .ok());
  EXPECT_TRUE(parse_pytorch(PickleText{.before = "}q\x01h\x01h\x01s0"}).ok());
  std::string nested = ")";
  for (int i = 0; i < 1'000'000; ++i) nested += '\x85';
  EXPECT_TRUE(parse_pytorch(PickleText{.before = nested + "0"}).ok());
}

// ---- the archive ----

TEST(ZipDirectory, FindsFilesWithAndWithoutZip64) {
  const std::string zip64 = testing::read_file(file_of("module.bin"));
  const auto files = read_zip_directory(std::as_bytes(std::span(zip64)), "m.bin");
  ASSERT_TRUE(files.ok()) << files.status().to_string();
  EXPECT_EQ(files->at("module/byteorder").size(), 6U);

  // One file "n" of "data", without zip64.
  const std::string local = "PK\3\4" + std::string(22, '\0') + raw(std::uint16_t{1}) +
                            raw(std::uint16_t{0}) + "n" + "data";
  const auto entry = [](std::uint32_t size, std::uint32_t offset, std::uint16_t extra) {
    return "PK\1\2" + std::string(16, '\0') + raw(size) + raw(size) + raw(std::uint16_t{1}) +
           raw(extra) + raw(std::uint16_t{0}) + std::string(8, '\0') + raw(offset) + "n";
  };
  const auto archive = [&](const std::string& directory, std::uint16_t count,
                           std::uint32_t offset) {
    return local + directory + "PK\5\6" + std::string(4, '\0') + raw(count) + raw(count) +
           raw(static_cast<std::uint32_t>(directory.size())) + raw(offset) + raw(std::uint16_t{0});
  };
  const auto read = [](const std::string& bytes) {
    return read_zip_directory(std::as_bytes(std::span(bytes)), "m.bin");
  };
  const auto at = static_cast<std::uint32_t>(local.size());
  const auto good = archive(entry(4, 0, 0), 1, at);
  ASSERT_TRUE(read(good).ok()) << read(good).status().to_string();
  EXPECT_EQ(read(good)->at("n").size(), 4U);
  EXPECT_TRUE(read(archive("", 0, at)).ok());

  EXPECT_FALSE(read(archive(entry(5, 0, 0), 1, at)).ok());   // more bytes than before the directory
  EXPECT_FALSE(read(archive(entry(4, 1, 0), 1, at)).ok());   // not at its place
  EXPECT_FALSE(read(archive(entry(4, at, 0), 1, at)).ok());  // in the directory
  EXPECT_FALSE(read(archive(entry(4, 0, 0), 2, at)).ok());   // fewer files than it says
  EXPECT_FALSE(read(archive(entry(4, 0, 0), 1, at + 1)).ok());
  EXPECT_FALSE(
      read(archive(entry(4, 0, 0) + entry(4, 0, 0), 2, at)).ok());  // twice, and overlapping
  EXPECT_FALSE(read(archive(entry(~std::uint32_t{0}, 0, 0), 1, at))
                   .ok());  // 64-bit sizes that are not there
  const auto zip64_entry = entry(~std::uint32_t{0}, 0, 20) + raw(std::uint16_t{1}) +
                           raw(std::uint16_t{16}) + raw(std::uint64_t{4}) + raw(std::uint64_t{4});
  ASSERT_TRUE(read(archive(zip64_entry, 1, at)).ok());
  const auto huge_entry = entry(~std::uint32_t{0}, 0, 20) + raw(std::uint16_t{1}) +
                          raw(std::uint16_t{16}) + raw(~std::uint64_t{0}) + raw(~std::uint64_t{0});
  EXPECT_FALSE(read(archive(huge_entry, 1, at)).ok());
}

}  // namespace
}  // namespace rl
