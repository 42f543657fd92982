// Speed of tokenizers: encoding and decoding 10 MB of text, on one thread and on several.
//
//   bench_tokenizer [--model PATH]... [--threads 1,2] [--megabytes 10] [--repeat 3] [--json]
//   [--source DIR] [--write-text FILE]
//
// The text is this project's checkout: sources, guides and the tricky lines of the tokenizer
// fixtures (--source, by default the current folder). It comes in pieces of up to 2 kB, in an order
// drawn from a fixed seed. Words repeat as words do, lines hardly. Best of --repeat runs.
// --write-text writes the pieces as JSON lines for bench/peers/tokenizers and ends.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "rl/tokenizer/tokenizer.h"
#include "runtime/core/rest_of.h"

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr std::size_t kPieceBytesMax = 2000;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return runtime::rest_of(in);
}

// Whole lines, up to kPieceBytesMax together.
void cut(std::string_view text, std::vector<std::string>& pieces) {
  while (!text.empty()) {
    std::size_t end = std::min(text.size(), kPieceBytesMax);
    if (end < text.size()) {
      const std::size_t line = text.rfind('\n', end);
      end = line != std::string_view::npos && line > 0
                ? line
                : std::min(text.find('\n', end), text.size());
    }
    pieces.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

// What the tokenizers were tried with: many scripts, emoji, odd spaces.
std::string tricky_lines(const fs::path& source) {
  std::string lines;
  for (const Json& row :
       Json::parse(read(source / "tests/fixtures/tokenizers/gpt2_bytelevel/reference.json")))
    lines += row["text"].get<std::string>() + "\n";
  return lines;
}

std::vector<std::string> make_text(const fs::path& source, std::size_t bytes) {
  std::vector<fs::path> files;
  for (const char* folder : {"docs", "rl", "runtime", "placement", "tests/rl"}) {
    for (const auto& entry : fs::recursive_directory_iterator(source / folder)) {
      const std::string extension = entry.path().extension().string();
      if (entry.is_regular_file() &&
          (extension == ".md" || extension == ".cpp" || extension == ".h"))
        files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> pieces;
  for (const fs::path& file : files) cut(read(file), pieces);
  for (int i = 0; i < 20; ++i) pieces.push_back(tricky_lines(source));
  std::mt19937_64 random(1);
  std::vector<std::string> text;
  for (std::size_t have = 0; have < bytes;) {
    // Fisher and Yates, spelled out since std::shuffle differs between libraries.
    for (std::size_t i = pieces.size(); i > 1; --i) std::swap(pieces[i - 1], pieces[random() % i]);
    for (std::size_t i = 0; i < pieces.size() && have < bytes; ++i) {
      text.push_back(pieces[i]);
      have += pieces[i].size();
    }
  }
  return text;
}

struct Figures {
  double encode_mb_per_s = 0;
  double decode_tokens_per_s = 0;
  std::size_t tokens = 0;
};

template <class Work>
double best_seconds(int repeat, std::size_t threads, std::size_t count, Work work) {
  double best = 1e9;
  for (int round = 0; round < repeat; ++round) {
    std::atomic<std::size_t> next = 0;
    const auto loop = [&] {
      for (std::size_t i = next++; i < count; i = next++) work(i);
    };
    const Clock::time_point start = Clock::now();
    {
      std::vector<std::jthread> others;
      for (std::size_t i = 1; i < threads; ++i) others.emplace_back(loop);
      loop();
    }
    best = std::min(best, seconds_since(start));
  }
  return best;
}

Figures measure(const rl::Tokenizer& tokenizer, const std::vector<std::string>& text,
                std::size_t threads, int repeat) {
  std::vector<std::vector<std::int32_t>> ids(text.size());
  std::size_t bytes = 0;
  for (const std::string& piece : text) bytes += piece.size();
  Figures figures;
  figures.encode_mb_per_s =
      static_cast<double>(bytes) / 1e6 /
      best_seconds(repeat, threads, text.size(), [&](std::size_t i) {
        auto encoded = tokenizer.encode(text[i], true);
        if (!encoded.ok())
          std::fprintf(stderr, "error: %s\n", encoded.status().to_string().c_str()), std::_Exit(1);
        ids[i] = std::move(*encoded);
      });
  for (const auto& piece : ids) figures.tokens += piece.size();
  std::atomic<std::size_t> decoded_bytes = 0;  // so that nothing is left out as unused
  figures.decode_tokens_per_s = static_cast<double>(figures.tokens) /
                                best_seconds(repeat, threads, text.size(), [&](std::size_t i) {
                                  decoded_bytes += tokenizer.decode(ids[i], true).size();
                                });
  return figures;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> models;
  std::vector<std::size_t> threads = {1, 2};
  std::size_t megabytes = 10;
  int repeat = 3;
  bool json = false;
  std::string write_text, source = ".";
  CLI::App app("Tokenizer speed.", "bench_tokenizer");
  app.add_option("--model", models, "model folders or tokenizer files (default: the fixtures')");
  app.add_option("--threads", threads, "numbers of threads")->delimiter(',')->capture_default_str();
  app.add_option("--megabytes", megabytes, "of text")->capture_default_str();
  app.add_option("--repeat", repeat, "runs, of which the best counts")->capture_default_str();
  app.add_option("--source", source, "a checkout of the project")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
  app.add_option("--write-text", write_text, "write the text as JSON lines and end");
  app.add_flag("--json", json, "one JSON object per model and number of threads");
  CLI11_PARSE(app, argc, argv);
  const std::vector<std::string> text = make_text(source, megabytes * 1'000'000);
  if (!write_text.empty()) {
    std::ofstream out(write_text);
    for (const std::string& piece : text) out << Json(piece).dump() << '\n';
    return out.flush() ? 0 : 1;
  }
  if (models.empty()) {
    for (const auto& entry : fs::directory_iterator(fs::path(source) / "tests/fixtures/tokenizers"))
      models.push_back(entry.path().string());
    std::sort(models.begin(), models.end());
  }
  for (const std::string& model : models) {
    auto tokenizer = rl::Tokenizer::load(model);
    if (!tokenizer.ok()) {
      std::fprintf(stderr, "error: %s\n", tokenizer.status().to_string().c_str());
      return 1;
    }
    for (std::size_t count : threads) {
      const Figures figures = measure(*tokenizer, text, count, repeat);
      const std::string name = fs::path(model).filename().string();
      if (json) {
        std::printf("%s\n", Json({{"model", name},
                                  {"threads", count},
                                  {"encode_mb_per_s", figures.encode_mb_per_s},
                                  {"decode_tokens_per_s", figures.decode_tokens_per_s},
                                  {"tokens", figures.tokens}})
                                .dump()
                                .c_str());
      } else {
        std::printf("%-24s %zu threads: %7.1f MB/s encoded, %6.2f M tokens/s decoded\n",
                    name.c_str(), count, figures.encode_mb_per_s,
                    figures.decode_tokens_per_s / 1e6);
      }
      std::fflush(stdout);
    }
  }
}
