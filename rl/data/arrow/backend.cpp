// The one symbol of libstarling_arrow.so. Parquet's C++ throws on damaged files below Arrow's own
// error handling: nothing of that leaves this file.
#include <exception>
#include <new>
#include <utility>

#include "rl/data/arrow/arrow_rows.h"
#include "rl/data/arrow_library.h"

namespace rl {
namespace {

using runtime::Result;

template <class Function>
auto guarded(const std::string& name, Function function) -> decltype(function()) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return runtime::resource_exhausted("data file " + name + ": out of memory");
  } catch (const std::exception& exception) {
    return runtime::invalid_argument("data file " + name + ": " + exception.what());
  }
}

class GuardedSource final : public RowSource {
 public:
  GuardedSource(std::string name, std::unique_ptr<RowSource> source)
      : name_(std::move(name)), source_(std::move(source)) {}
  Result<std::vector<std::int64_t>> block_rows() override {
    return guarded(name_, [&] { return source_->block_rows(); });
  }
  Result<std::vector<RawRow>> read_block(std::int64_t block) override {
    return guarded(name_, [&] { return source_->read_block(block); });
  }
  Result<std::vector<RawRow>> next() override {
    return guarded(name_, [&] { return source_->next(); });
  }

 private:
  const std::string name_;
  std::unique_ptr<RowSource> source_;
};

class Backend final : public ArrowBackend {
 public:
  Result<std::unique_ptr<RowSource>> open(const std::string& name,
                                          const std::filesystem::path& path,
                                          RowForm form) override {
    Result<std::unique_ptr<RowSource>> source = guarded(name, [&] {
      return form == RowForm::kParquet ? open_parquet(name, path) : open_arrow(name, path);
    });
    if (!source.ok()) return source;
    return std::unique_ptr<RowSource>(std::make_unique<GuardedSource>(name, std::move(*source)));
  }
  Result<std::unique_ptr<RowSink>> create(const std::string& name,
                                          const std::filesystem::path& path, RowForm form,
                                          const RowType& type) override {
    return guarded(name, [&] { return create_arrow(name, path, form, type); });
  }
};

}  // namespace
}  // namespace rl

extern "C" __attribute__((visibility("default"))) rl::ArrowBackend* starling_arrow_backend(
    int abi) {
  static rl::Backend backend;
  return abi == rl::kArrowBackendAbi ? &backend : nullptr;
}
