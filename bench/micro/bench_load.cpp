// Time to load a model, until every parameter is resident in fp32, against merely reading and
// converting the same bytes.
//
//   bench_load --json                      1 GB of fp32 parameters in safetensors of each dtype,
//                                          single and sharded, and in GGUF
//   bench_load --parameters-mib 256 --repeat 3
//
// The files are made in a temporary folder and stay in the page cache. The comparison reads the
// same tensors with read() and converts them into new memory on as many threads; both are run in
// turn. Medians, with the spread (max - min) / median.
#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include "bench/support/machine.h"
#include "bench/support/model_of_size.h"
#include "bench/support/take.h"
#include "bench/support/timing.h"
#include "rl/model/family.h"
#include "rl/model/model_config.h"
#include "rl/model/parameters.h"
#include "rl/model/save.h"
#include "rl/weights/convert.h"
#include "rl/weights/safetensors.h"

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Options {
  std::int64_t parameters_mib = 1024;  // in fp32
  int repeat = 5;
  bool json = false;
};

// One stretch of a file and how it is stored.
struct Piece {
  std::string file;
  std::uint64_t offset;
  std::size_t elements;
  rl::DType dtype;
};

constexpr std::size_t kPieceElements = 1 << 20;

std::vector<Piece> pieces_of(const fs::path& folder) {
  std::vector<Piece> pieces;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    std::uint64_t header_bytes = 0;
    file.read(reinterpret_cast<char*>(&header_bytes), sizeof header_bytes);
    std::string header(header_bytes, '\0');
    file.read(header.data(), static_cast<std::streamsize>(header.size()));
    const nlohmann::json tensors = nlohmann::json::parse(header);
    for (const auto& [name, tensor] : tensors.items()) {
      if (name == "__metadata__") continue;
      const auto dtype = tensor["dtype"] == "F32"   ? rl::DType::kF32
                         : tensor["dtype"] == "F16" ? rl::DType::kF16
                                                    : rl::DType::kBF16;
      const std::uint64_t begin = 8 + header_bytes + tensor["data_offsets"][0].get<std::uint64_t>();
      const std::uint64_t end = 8 + header_bytes + tensor["data_offsets"][1].get<std::uint64_t>();
      const auto size = static_cast<std::uint64_t>(rl::dtype_block(dtype).bytes);
      for (std::uint64_t at = begin; at < end; at += kPieceElements * size) {
        pieces.push_back({entry.path().string(), at,
                          std::min<std::size_t>(kPieceElements, (end - at) / size), dtype});
      }
    }
  }
  return pieces;
}

// The least that loading can mean: every byte read, converted, and written to memory that was not
// there before.
double read_and_convert(const std::vector<Piece>& pieces) {
  std::size_t elements = 0;
  std::vector<std::size_t> places;
  for (const Piece& piece : pieces) {
    places.push_back(elements);
    elements += piece.elements;
  }
  const auto start = bench::Clock::now();
  const std::size_t bytes = elements * sizeof(float);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) bench::fail("no memory");
  std::atomic<std::size_t> next{0};
  at::parallel_for(0, at::get_num_threads(), 1, [&](std::int64_t, std::int64_t) {
    std::string open_name;
    int fd = -1;
    std::vector<std::byte> buffer(kPieceElements * sizeof(float));
    for (std::size_t i = next++; i < pieces.size(); i = next++) {
      const Piece& piece = pieces[i];
      if (piece.file != open_name) {
        if (fd >= 0) ::close(fd);
        fd = ::open(piece.file.c_str(), O_RDONLY | O_CLOEXEC);
        open_name = piece.file;
      }
      const std::size_t wanted =
          piece.elements * static_cast<std::size_t>(rl::dtype_block(piece.dtype).bytes);
      std::byte* out = static_cast<std::byte*>(memory) + places[i] * sizeof(float);
      std::byte* into = piece.dtype == rl::DType::kF32 ? out : buffer.data();
      if (::pread(fd, into, wanted, static_cast<off_t>(piece.offset)) !=
          static_cast<ssize_t>(wanted))
        bench::fail("read " + piece.file);
      if (into != out)
        rl::convert_to_f32(piece.dtype, into, {reinterpret_cast<float*>(out), piece.elements});
    }
    if (fd >= 0) ::close(fd);
  });
  const double seconds = bench::seconds_since(start);
  ::munmap(memory, bytes);
  return seconds;
}

double load(const rl::ModelConfig& config, const fs::path& model) {
  const auto start = bench::Clock::now();
  const rl::Parameters parameters = bench::take(rl::Parameters::load(config, model));
  return bench::seconds_since(start);
}

struct Figure {
  double median;
  double spread;
};

Figure figure(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double median = bench::median(values);
  return {median, (*high - *low) / median};
}

Json measure(const Options& options, const std::string& name, const rl::ModelConfig& config,
             const fs::path& model) {
  const std::vector<Piece> pieces =
      fs::is_directory(model) ? pieces_of(model) : std::vector<Piece>();
  std::vector<double> loads, reads;
  for (int round = -1; round < options.repeat; ++round) {  // the first warms the page cache
    const double read = pieces.empty() ? 0.0 : read_and_convert(pieces);
    const double loaded = load(config, model);
    if (round < 0) continue;
    reads.push_back(read);
    loads.push_back(loaded);
  }
  const Figure loaded = figure(loads);
  Json out{{"name", name}, {"load_s", loaded.median}, {"load_spread", loaded.spread}};
  if (!pieces.empty()) {
    const Figure read = figure(reads);
    out["read_s"] = read.median;
    out["read_spread"] = read.spread;
    out["ratio"] = loaded.median / read.median;
  }
  return out;
}

// GGUF files of the same tensors: random bytes are as good as any to de-quantise, as long as no
// scale is infinite.
void write_gguf(const fs::path& file, const rl::ModelConfig& config, std::uint32_t type,
                std::int64_t block_elements, std::int64_t block_bytes) {
  std::ofstream out(file, std::ios::binary);
  const auto put = [&](auto value) {
    out.write(reinterpret_cast<const char*>(&value), sizeof value);
  };
  const auto put_text = [&](const std::string& text) {
    put(static_cast<std::uint64_t>(text.size()));
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
  };
  const std::vector<rl::FamilyParameter> parameters = rl::plan_of(config).parameters;
  out.write("GGUF", 4);
  put(std::uint32_t{3});
  put(static_cast<std::uint64_t>(parameters.size()));
  put(std::uint64_t{0});
  std::vector<std::uint64_t> sizes;
  std::uint64_t offset = 0;
  for (const rl::FamilyParameter& parameter : parameters) {
    const bool matrix = parameter.shape.size() == 2;
    std::int64_t count = 1;
    for (const std::int64_t size : parameter.shape) count *= size;
    put_text(parameter.gguf_name);
    put(static_cast<std::uint32_t>(parameter.shape.size()));
    for (auto size = parameter.shape.rbegin(); size != parameter.shape.rend(); ++size)
      put(static_cast<std::uint64_t>(*size));
    put(matrix ? type : std::uint32_t{0});
    put(offset);
    sizes.push_back(
        static_cast<std::uint64_t>(matrix ? count / block_elements * block_bytes : count * 4));
    offset += (sizes.back() + 31) / 32 * 32;
  }
  while (out.tellp() % 32 != 0) out.put(0);
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> noise(1 << 16);
  for (std::uint64_t& value : noise) value = random() & 0x3f3f3f3f3f3f3f3f;  // halves below 2
  for (std::uint64_t size : sizes) {
    for (std::uint64_t left = (size + 31) / 32 * 32; left > 0;) {
      const auto now = std::min<std::uint64_t>(left, noise.size() * 8);
      out.write(reinterpret_cast<const char*>(noise.data()), static_cast<std::streamsize>(now));
      left -= now;
    }
  }
  if (!out.flush()) bench::fail("writing " + file.string());
}

void print(const Json& row) {
  std::printf("%-20s load %6.3f s (spread %.2f)", row["name"].get<std::string>().c_str(),
              row["load_s"].get<double>(), row["load_spread"].get<double>());
  if (row.contains("ratio"))
    std::printf("   read and convert %6.3f s (spread %.2f)   %.2fx", row["read_s"].get<double>(),
                row["read_spread"].get<double>(), row["ratio"].get<double>());
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Time to load a model against reading and converting its bytes.");
  Options options;
  app.add_option("--parameters-mib", options.parameters_mib, "size of the parameters in fp32")
      ->check(CLI::Range(300, 1 << 20))
      ->capture_default_str();
  app.add_option("--repeat", options.repeat, "loads of each kind")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--json", options.json, "one JSON object instead of lines");
  CLI11_PARSE(app, argc, argv);
  std::string pattern = (fs::temp_directory_path() / "starling_load_XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) bench::fail("no temporary folder");
  const fs::path folder = pattern;
  const rl::ModelConfig config = bench::model_of_size(options.parameters_mib);
  Json rows = Json::array();
  const auto add = [&](Json row) {
    if (!options.json) print(row);
    rows.push_back(std::move(row));
  };
  for (const auto& [name, dtype] : {std::pair("fp32", rl::DType::kF32),
                                    {"fp16", rl::DType::kF16},
                                    {"bf16", rl::DType::kBF16}}) {
    for (const bool sharded : {false, true}) {
      {
        const rl::Parameters parameters = rl::Parameters::random(config, 1);
        const runtime::Status saved =
            rl::save_model_folder(config, parameters, folder / "model",
                                  {.shard_bytes_max = sharded ? 200 << 20 : 0, .dtype = dtype});
        if (!saved.ok()) bench::fail(saved.to_string());
      }
      add(measure(options, std::string(name) + (sharded ? " sharded" : ""), config,
                  folder / "model"));
      fs::remove_all(folder / "model");
    }
  }
  constexpr std::uint32_t kQ8_0 = 8, kQ4_K = 12;
  for (const auto& [name, type, elements, bytes] :
       {std::tuple("gguf Q8_0", kQ8_0, 32, 34), std::tuple("gguf Q4_K", kQ4_K, 256, 144)}) {
    write_gguf(folder / "model.gguf", config, type, elements, bytes);
    add(measure(options, name, config, folder / "model.gguf"));
  }
  fs::remove_all(folder);
  if (options.json) {
    std::cout << Json{{"bench", "load"},
                      {"machine", bench::machine()},
                      {"commit", bench::commit()},
                      {"parameters_mib", options.parameters_mib},
                      {"threads", at::get_num_threads()},
                      {"repeat", options.repeat},
                      {"rows", rows}}
              << "\n";
  }
  return 0;
}
