// Rows into Parquet and Arrow: JSON values into Arrow's builders, a record batch at a time.
#include <arrow/builder.h>
#include <arrow/io/interfaces.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/table_builder.h>
#include <arrow/type.h>
#include <parquet/arrow/writer.h>

#include <utility>

#include "rl/data/arrow/arrow_rows.h"
#include "rl/data/json_text.h"
#include "rl/data/row_type.h"
#include "rl/weights/atomic_file.h"

namespace rl {
namespace {

using arrow::internal::checked_cast;
using nlohmann::ordered_json;
using runtime::Result;
using runtime::Status;

// Small enough for training to read groups in shuffled order.
constexpr std::int64_t kGroupRows = 4096;

std::shared_ptr<arrow::DataType> arrow_type(const RowType& type) {
  switch (type.kind) {
    case RowType::Kind::kBool: return arrow::boolean();
    case RowType::Kind::kInt: return arrow::int64();
    case RowType::Kind::kUnsigned: return arrow::uint64();
    case RowType::Kind::kFloat: return arrow::float64();
    case RowType::Kind::kNull:  // a column without a value: Hugging Face reads it as texts that are
                                // missing
    case RowType::Kind::kText: return arrow::utf8();
    case RowType::Kind::kList:
      return arrow::list(type.element.empty() ? arrow::utf8() : arrow_type(type.element[0]));
    case RowType::Kind::kObject: break;
  }
  if (type.fields.empty()) return arrow::utf8();  // Parquet has no structs without fields
  arrow::FieldVector fields;
  for (const auto& [name, child] : type.fields)
    fields.push_back(arrow::field(name, arrow_type(child)));
  return arrow::struct_(fields);
}

arrow::Status append(const ordered_json& value, arrow::ArrayBuilder& builder) {
  if (value.is_null()) return builder.AppendNull();
  const auto unfit = [&] {
    return arrow::Status::TypeError("a value is ", json_type_name(value), ", the column's type is ",
                                    builder.type()->ToString());
  };
  switch (builder.type()->id()) {
    case arrow::Type::BOOL:
      return value.is_boolean()
                 ? checked_cast<arrow::BooleanBuilder&>(builder).Append(value.get<bool>())
                 : unfit();
    case arrow::Type::INT64:
      return value.is_number_integer() &&
                     (!value.is_number_unsigned() || value.get<std::uint64_t>() <= INT64_MAX)
                 ? checked_cast<arrow::Int64Builder&>(builder).Append(value.get<std::int64_t>())
                 : unfit();
    case arrow::Type::UINT64:
      return value.is_number_integer() &&
                     (value.is_number_unsigned() || value.get<std::int64_t>() >= 0)
                 ? checked_cast<arrow::UInt64Builder&>(builder).Append(value.get<std::uint64_t>())
                 : unfit();
    case arrow::Type::DOUBLE:
      return value.is_number()
                 ? checked_cast<arrow::DoubleBuilder&>(builder).Append(value.get<double>())
                 : unfit();
    case arrow::Type::STRING:
      if (value.is_object() && value.empty()) return builder.AppendNull();
      return value.is_string() ? checked_cast<arrow::StringBuilder&>(builder).Append(
                                     value.get_ref<const std::string&>())
                               : unfit();
    case arrow::Type::LIST: {
      if (!value.is_array()) return unfit();
      auto& list = checked_cast<arrow::ListBuilder&>(builder);
      ARROW_RETURN_NOT_OK(list.Append());
      for (const ordered_json& element : value)
        ARROW_RETURN_NOT_OK(append(element, *list.value_builder()));
      return arrow::Status::OK();
    }
    case arrow::Type::STRUCT: {
      if (!value.is_object()) return unfit();
      auto& object = checked_cast<arrow::StructBuilder&>(builder);
      ARROW_RETURN_NOT_OK(object.Append());
      for (int i = 0; i < object.num_fields(); ++i) {
        const auto field = value.find(builder.type()->field(i)->name());
        ARROW_RETURN_NOT_OK(field == value.end() ? object.field_builder(i)->AppendNull()
                                                 : append(*field, *object.field_builder(i)));
      }
      return arrow::Status::OK();
    }
    default: return unfit();
  }
}

/// An AtomicFile as Arrow's writers see it.
class Output final : public arrow::io::OutputStream {
 public:
  explicit Output(AtomicFile file) : file_(std::move(file)) {}

  arrow::Status Write(const void* data, std::int64_t bytes) override {
    failure_ = failure_.ok() ? file_.write(std::span(static_cast<const std::byte*>(data),
                                                     static_cast<std::size_t>(bytes)))
                             : failure_;
    if (!failure_.ok()) return arrow::Status::IOError(failure_.message());
    position_ += bytes;
    return arrow::Status::OK();
  }
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  arrow::Result<std::int64_t> Tell() const override { return position_; }
  bool closed() const override { return closed_; }

  Status commit() { return failure_.ok() ? file_.commit() : failure_; }
  const Status& failure() const { return failure_; }

 private:
  AtomicFile file_;
  Status failure_;
  std::int64_t position_ = 0;
  bool closed_ = false;
};

class ArrowSink final : public RowSink {
 public:
  ArrowSink(std::string name, std::shared_ptr<Output> out, std::shared_ptr<arrow::Schema> schema)
      : name_(std::move(name)), out_(std::move(out)), schema_(std::move(schema)) {}

  arrow::Status open(RowForm form) {
    if (form == RowForm::kParquet) {
      const auto properties = parquet::WriterProperties::Builder()
                                  .compression(parquet::Compression::SNAPPY)
                                  ->memory_pool(arrow::system_memory_pool())
                                  ->build();
      ARROW_ASSIGN_OR_RAISE(parquet_, parquet::arrow::FileWriter::Open(
                                          *schema_, arrow::system_memory_pool(), out_, properties));
    } else if (form == RowForm::kArrow) {
      ARROW_ASSIGN_OR_RAISE(ipc_, arrow::ipc::MakeFileWriter(out_, schema_));
    } else {
      ARROW_ASSIGN_OR_RAISE(ipc_, arrow::ipc::MakeStreamWriter(out_, schema_));
    }
    ARROW_ASSIGN_OR_RAISE(builder_,
                          arrow::RecordBatchBuilder::Make(schema_, arrow::system_memory_pool()));
    return arrow::Status::OK();
  }

  Status write(const RawRow& row) override {
    for (int i = 0; i < schema_->num_fields(); ++i) {
      const auto value = row.value.find(schema_->field(i)->name());
      const arrow::Status status = value == row.value.end()
                                       ? builder_->GetField(i)->AppendNull()
                                       : append(*value, *builder_->GetField(i));
      if (!status.ok())
        return runtime::invalid_argument(row.where + ": column '" + schema_->field(i)->name() +
                                         "': " + status.message());
    }
    if (++held_ < kGroupRows) return Status();
    return typed(flush());
  }

  Status commit() override {
    arrow::Status status = held_ > 0 ? flush() : arrow::Status::OK();
    if (status.ok()) status = parquet_ ? parquet_->Close() : ipc_->Close();
    return status.ok() ? out_->commit() : typed(status);
  }

 private:
  arrow::Status flush() {
    held_ = 0;
    ARROW_ASSIGN_OR_RAISE(const auto batch, builder_->Flush());
    if (ipc_) return ipc_->WriteRecordBatch(*batch);
    ARROW_RETURN_NOT_OK(parquet_->NewBufferedRowGroup());
    return parquet_->WriteRecordBatch(*batch);
  }

  Status typed(const arrow::Status& status) const {
    if (!out_->failure().ok()) return out_->failure();
    return status.ok() ? Status() : arrow_failure(name_, status);
  }

  const std::string name_;
  std::shared_ptr<Output> out_;
  std::shared_ptr<arrow::Schema> schema_;
  std::unique_ptr<parquet::arrow::FileWriter> parquet_;
  std::shared_ptr<arrow::ipc::RecordBatchWriter> ipc_;
  std::unique_ptr<arrow::RecordBatchBuilder> builder_;
  std::int64_t held_ = 0;
};

}  // namespace

Result<std::unique_ptr<RowSink>> create_arrow(const std::string& name,
                                              const std::filesystem::path& path, RowForm form,
                                              const RowType& type) {
  if (type.fields.empty()) return runtime::invalid_argument(name + ": the rows have no columns");
  arrow::FieldVector fields;
  for (const auto& [column, child] : type.fields)
    fields.push_back(arrow::field(column, arrow_type(child)));
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file.ok()) return file.status();
  auto sink = std::make_unique<ArrowSink>(name, std::make_shared<Output>(std::move(*file)),
                                          arrow::schema(fields));
  if (const arrow::Status status = sink->open(form); !status.ok())
    return arrow_failure(name, status);
  return std::unique_ptr<RowSink>(std::move(sink));
}

}  // namespace rl
