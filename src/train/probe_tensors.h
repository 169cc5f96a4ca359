// Whole tensors of a step, for whoever wants more than their statistics (probe.task "tensor"):
// which ones are asked for, and their files beside dump.json. docs/probe.md is the page.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "frontend/module.h"
#include "frontend/ports.h"
#include "frontend/programs.h"
#include "observe/probe/dump.h"
#include "recipe/recipe.h"
#include "train/file_queue.h"

namespace aloft {

// Asks for the values in the programs that are added next: what probe.list says, all where it says
// nothing.
void tap_tensors(Programs& programs, const ProbeSection& probe, nn::Module& model);

// Of one program's values.
class ProbeTensors {
 public:
  // UserError E0327 where nothing that the program has is asked for. `dump` outlives this.
  ProbeTensors(const Programs& programs, const std::string& program, const ProbeSection& probe,
               const probe::Dump& dump);

  // Files of a step, which `queue` writes to `folder`, or checksums; and the records' keys of both.
  // `all`: its statistics.
  struct Taken {
    std::vector<nlohmann::ordered_json> added;  // to each value's record; null: nothing
    std::uint64_t files = 0, bytes = 0;
  };
  Taken take(std::span<const double> all, const Path& folder, FileQueue& queue) const;

 private:
  ProbeSection probe_;
  const probe::Dump& dump_;
  std::vector<std::optional<OutputPort<std::byte>>> ports_;  // of each value of the dump
};

}  // namespace aloft
