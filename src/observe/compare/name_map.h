// The mapping file of `--map`: which module of one run is which of the other, where their structure
// does not say it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"

namespace aloft::compare {

// Pairs of patterns; a '*' stands for any run of characters, and the k-th of the one for what the
// k-th of the other stood for: "h.*.drop_attn" = "transformer.h.*.attn.resid_dropout".
class NameMap {
 public:
  NameMap() = default;
  // A table `modules` of such pairs, as TOML (.toml) or JSON. UserError E0728 where it is none.
  static NameMap read(const Path& file);
  static NameMap parse(std::string_view text, const std::string& name, bool is_toml);

  void add(std::string from, std::string to);
  // What the first pattern that fits makes of a path; nothing where none does.
  std::optional<std::string> other_name_of(std::string_view path) const;

 private:
  std::vector<std::pair<std::string, std::string>> pairs_;
};

}  // namespace aloft::compare
