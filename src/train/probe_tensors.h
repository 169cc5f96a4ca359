// Whole tensors of a step, for whoever wants more than their statistics (probe.task "tensor"):
// their files beside dump.json. docs/probe.md is the page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "observe/probe/dump.h"
#include "recipe/recipe.h"
#include "train/file_queue.h"

namespace aloft {

// The first bytes of a value that a step left, copied.
using TensorSource = std::function<std::vector<std::byte>(std::size_t bytes)>;
// Of the value that the tap of this name shows; empty where there is none.
using FindTensor = std::function<TensorSource(const std::string& tap)>;

// Of one program's values, or one eager step's.
class ProbeTensors {
 public:
  // UserError E0327 where nothing that there is is asked for. `dump` outlives this.
  ProbeTensors(const FindTensor& find, const ProbeSection& probe, const probe::Dump& dump);

  // Files of a step, which `queue` writes to `folder`, or checksums; and the records' keys of both.
  // `all`: its statistics. Each record has a file by its own name, as msprobe has it; those of one
  // value are one file with several names: msprobe calls a record as its file.
  struct Taken {
    std::vector<nlohmann::ordered_json> added;  // to each record (probe::Dump); null: nothing
    std::uint64_t files = 0, bytes = 0;         // each value once
  };
  Taken take(std::span<const double> all, const Path& folder, FileQueue& queue) const;

 private:
  ProbeSection probe_;
  const probe::Dump& dump_;
  std::vector<TensorSource> sources_;               // of each value of the dump
  std::vector<std::vector<std::size_t>> operands_;  // and which of dump.taken() are records of it
};

}  // namespace aloft
