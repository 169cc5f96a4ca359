// The mapping file of `--map`: which module, or which value, of one run is which of the other,
// where their structure does not say it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"

namespace aloft::compare {

enum class MapFormat { Json, Toml, Yaml };

// Pairs of patterns of modules' paths; a '*' stands for any run of characters, and the k-th of the
// one for what the k-th of the other stood for: "h.*.drop_attn" =
// "transformer.h.*.attn.resid_dropout". And pairs of values, by whole names.
class NameMap {
 public:
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  NameMap() = default;
  // A table `modules` of such pairs, as TOML (.toml), YAML (.yaml, .yml) or JSON (any other name);
  // or, in YAML and JSON, what msprobe takes with --data_mapping: names of values, such as
  // "Functional.linear.4.forward.input.0", each with that of the other run. Two modules of which
  // values belong together are a pair as well. UserError E0728 where it is neither, and where it is
  // no regular file.
  static NameMap read(const Path& file);
  static NameMap parse(std::string_view text, const std::string& name, MapFormat format);

  void add(std::string from, std::string to);
  // What the first pattern that fits makes of a path; nothing where none does.
  std::optional<std::string> other_name_of(std::string_view path) const;
  // Values by the names of their records (dump_file.h).
  const Pairs& values() const { return values_; }

 private:
  bool add_value(const std::string& from, const std::string& to);

  Pairs modules_, values_;
};

}  // namespace aloft::compare
