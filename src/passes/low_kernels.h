// Ops that a back end has no kernel for in a low type: they are computed in f32, and one warning
// says which and where.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <utility>

#include "graph/scope.h"
#include "ops/op.h"
#include "types/call.h"
#include "types/dtype.h"

namespace aloft {

// Whether a kernel of a back end takes a call.
using TakesCall = std::function<bool(const CallSpec&)>;

// What is known of a back end's kernels in low types. An op that was found to have one is not asked
// for again: a kernel's types do not depend on shapes.
class LowKernels {
 public:
  // Empty: every op has one.
  explicit LowKernels(TakesCall takes = {}) : takes_(std::move(takes)) {}
  // Whether nothing computes the op on these operands, one of which at least is bf16 or f16:
  // neither a kernel nor the ops of its body.
  bool lack(const OpDef& op, const OpCall& call, std::span<const TensorType> in,
            const Where& where);

 private:
  TakesCall takes_;
  std::set<std::pair<Name, DType>> known_;
};

// Warns that an op is computed in f32 for want of a kernel: once for each op, type and line of the
// user's program.
void tell_no_low_kernel(Name op, DType low, const Where& where);
// Warns that a device lacks a low type, or does not multiply it: once for each, naming the op that
// met it first.
void tell_no_low_type(Name op, DType low, bool is_stored, const Where& where);
// Somebody has said so already, of a whole run.
void no_low_type_is_told(DType low, bool is_stored);

}  // namespace aloft
