// KeyTable: the keys that one command knows, with what each means there.
#pragma once

#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rl/config/keys.h"

namespace rl {

/// A row of a table of keys that are used; see keys.inc.
struct UsedKey {
  std::string_view key;
  std::string_view default_text;
  KeyKind kind;
  std::string_view allowed;
  std::string_view what;  // one sentence: what it does
  std::string_view note = {};
};

/// A row of a table of keys that are known and not used; see unused_keys.inc.
struct UnusedKey {
  std::string_view key;
  std::string_view default_text;
  KeyKind kind;
  KeySupport support;
  std::string_view allowed;
  std::string_view why;
};

/// Made once a command, and never changed. Thread-safe.
class KeyTable {
 public:
  /// Rows that several commands share and rows of one alone; of a key that is there twice the later
  /// row counts.
  struct Part {
    std::span<const UsedKey> used;
    std::span<const UnusedKey> unused = {};
  };

  KeyTable(std::string_view command, std::initializer_list<Part> parts,
           std::span<const KeyAlias> aliases);

  KeyTable(const KeyTable&) = delete;
  KeyTable& operator=(const KeyTable&) = delete;

  /// "train", "sft".
  std::string_view command() const { return command_; }
  std::span<const KeyInfo> rows() const { return rows_; }
  std::span<const KeyAlias> aliases() const { return aliases_; }

  /// The row of a key: its own, or the nearest enclosing one of kind kMap (KeyInfo::is_above).
  /// nullptr when the command does not know the key.
  const KeyInfo* find(std::string_view key) const;

  /// Whether `key` is a section that known keys live under.
  bool is_section(std::string_view key) const;

  /// The key that an older name stands for; the name itself when it is none.
  std::string canonical(std::string_view key) const;

  /// Empty where nothing is written.
  std::string_view description(std::string_view key) const;

  /// The default values as a tree, references unresolved.
  const nlohmann::ordered_json& defaults() const { return defaults_; }

 private:
  const KeyInfo* find_row(std::string_view key) const;

  std::string_view command_;
  std::vector<KeyInfo> rows_;                          // grouped, for readers
  std::map<std::string_view, const KeyInfo*> by_key_;  // into rows_
  std::span<const KeyAlias> aliases_;
  std::map<std::string_view, std::string_view> descriptions_;
  nlohmann::ordered_json defaults_ = nlohmann::ordered_json::object();
};

/// The keys of `starling train`.
const KeyTable& train_keys();

/// Of the command of that name; nullptr: it has none.
const KeyTable* find_key_table(std::string_view command);

}  // namespace rl
