#include "rl/data/jsonl.h"

#include <utility>

#include "rl/data/json_text.h"
#include "rl/data/row_mapping.h"

namespace rl {

runtime::Result<DataRow> parse_row(std::string_view line, const std::string& prompt_key,
                                   const std::string& where) {
  runtime::Result<nlohmann::ordered_json> object = parse_json_text(line, where);
  if (!object.ok()) return object.status();
  RowMapping mapping;
  mapping.prompt = prompt_key;
  return map_row({std::move(*object), where}, mapping);
}

}  // namespace rl
