// Conversations stored as trees of messages, one message a row, as in oasst1.
#pragma once

#include <vector>

#include "rl/data/row_mapping.h"

namespace rl {

/// One row for each message of a user that has a reply. The prompt is the path from the root to it,
/// the response the best reply (the lowest `rank`, otherwise the first). Rows are in the order of
/// the files; a reply may come before what it replies to. Columns: message_id or id, parent_id,
/// role (prompter, user, human; assistant, bot, gpt), text or content. kInvalidArgument: a column
/// is missing or of a wrong type, an id twice, a parent that is not there, a circle, no reply at
/// all.
runtime::Result<std::vector<DataRow>> conversations_of_tree(const std::vector<RawRow>& messages,
                                                            const RowMapping& mapping);

}  // namespace rl
