// layer_norm and rms_norm as prepared kernels: rows shared out in fixed chunks, the parameters'
// gradients as one partial sum a chunk, added in the chunks' order.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/kernel.h"

namespace aloft::cpu {

// Statistics and parameters in types that the rows' sweeps take. `statistics`: index of the first
// operand that holds some, or the number of operands.
std::optional<Refusal> accepts_norm(const CallSpec& call, int x, int first_statistic,
                                    int statistics);

// in: x, then scale and shift where given; out: y, mean (if centred), rstd. The last `axes` axes
// are a row. `of_sum`: in begins with an addend, and out ends with its sum with x.
std::unique_ptr<Prepared> prepare_norm(const CallSpec& call, std::int64_t axes, double eps,
                                       bool centred, bool of_sum = false);
// in: dy, x, mean (if centred), rstd, then the scale where given; out: dx, then dscale and dshift
// where the op has them. `to_sum`: in begins with what is added to dx.
std::unique_ptr<Prepared> prepare_norm_grad(const CallSpec& call, std::int64_t axes, bool centred,
                                            bool to_sum = false);

// Which operand a result may take the place of: y that of x; dx that of dy, or of x behind it.
std::vector<std::pair<int, int>> over_x(const CallSpec& call);
std::vector<std::pair<int, int>> over_dy_or_x(const CallSpec& call);

}  // namespace aloft::cpu
