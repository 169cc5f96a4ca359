// The frame of every optimizer's kernels: one sweep over all tensors of an update op, shared out in
// chunks; an optimizer's formula, in vectors, is the code for a tile of elements.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "backends/cpu/update/update_tile.h"
#include "optim/kind.h"
#include "runtime/kernel.h"

namespace aloft::cpu {

// Split masters stand beside bf16 parameters.
std::optional<Refusal> accepts_update(const CallSpec& call);
// <name>_update, and <name>_sums.
std::unique_ptr<Prepared> prepare_update(const optim::FormulaRecord& formula,
                                         const UpdateVectors& vectors, const CallSpec& call);
std::unique_ptr<Prepared> prepare_sums(const optim::FormulaRecord& formula,
                                       const UpdateVectors& vectors, const CallSpec& call);
// <name>_numbers.
std::unique_ptr<Prepared> prepare_numbers(const optim::FormulaRecord& formula,
                                          const CallSpec& call);
// Each parameter, master and state may be overwritten by its new value.
std::vector<std::pair<int, int>> update_pairs(const optim::FormulaRecord& formula,
                                              const CallSpec& call);

}  // namespace aloft::cpu
