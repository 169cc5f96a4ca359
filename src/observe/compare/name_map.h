// The mapping file of `--map`: which module, or which value, of one run is which of the other,
// where their structure does not say it; as Aloft has it, or msprobe.
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
// "transformer.h.*.attn.resid_dropout". Or pairs of values, of cells, or of layers.
class NameMap {
 public:
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  // Below a module of this class, "TopLayer" below all, what lies at `from` lies at `to` in the
  // other run.
  struct Layer {
    std::string kind, from, to;
  };

  NameMap() = default;
  // A table `modules` of such pairs, as TOML (.toml), YAML (.yaml, .yml) or JSON (any other name);
  // or, in YAML and JSON, what msprobe takes with
  //   --data_mapping: names of values, "Functional.linear.4.forward.input.0", each with that of the
  //     other run. Two modules of which values belong together are a pair as well;
  //   --cell_mapping: modules with their classes, "fc2.Dense", or parts of such names, each with
  //     what is in its place in the other run;
  //   --layer_mapping: of classes what lies below them, {"ParallelMLP": {"mapping": "dense"}}.
  // UserError E0728 where it is none of these, its --api_mapping among them, and where it is no
  // regular file.
  static NameMap read(const Path& file);
  static NameMap parse(std::string_view text, const std::string& name, MapFormat format);

  void add(std::string from, std::string to);
  // What the first pattern that fits makes of a path; nothing where none does.
  std::optional<std::string> other_name_of(std::string_view path) const;
  // What one of the patterns makes of a path that it fits.
  static std::optional<std::string> other_name_by(const Pairs::value_type& patterns,
                                                  std::string_view path);

  const Pairs& modules() const { return modules_; }  // patterns
  // Values by the names of their records (dump_file.h).
  const Pairs& values() const { return values_; }
  const Pairs& cells() const { return cells_; }
  const std::vector<Layer>& layers() const { return layers_; }

  const std::string& name() const { return name_; }  // of the file
  // What it says, a line a pair: of values, cells, layers or patterns, whichever it has.
  std::vector<std::string> lines() const;

 private:
  bool add_value(const std::string& from, const std::string& to);

  std::string name_;
  Pairs modules_, values_, cells_;
  std::vector<Layer> layers_;
};

// Whether the two names of a line are there: that of the first run in its dump, and what it makes
// of that in the second's.
struct LineFit {
  bool in_npu = false, in_bench = false;
};

// The lines that have no effect, for a message: `"a: b" (not in the second dump), ... and 3 more`;
// "" where all fit. `fits`: of each of map.lines().
std::string without_effect(const NameMap& map, const std::vector<LineFit>& fits);

}  // namespace aloft::compare
