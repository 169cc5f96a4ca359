#include "ops/values_of_update.h"

#include <algorithm>
#include <cmath>

#include "ops/kept_states.h"
#include "ops/update.h"
#include "ops/update_layout.h"
#include "scalar/block_float.h"

namespace aloft {
namespace {

ValuesOfUpdate of_split_master(const HostArray& near, const HostArray& rests) {
  ValuesOfUpdate v{HostArray::zeros(DType::F32, near.shape)};
  for (std::int64_t j = 0; j < near.numel(); ++j) v.values[j] = split_master(near, rests, j);
  return v;
}

// The larger step from a code to those beside it, of a block with the scale 1.
double step_at(std::uint8_t code, scalar::BlockForm form) {
  const std::uint32_t size = code & form.most();
  const auto value = [&](std::uint32_t s) {
    return double{scalar::block_value(static_cast<std::uint8_t>(s), 1.0F, form)};
  };
  const double up = size < form.most() ? value(size + 1) - value(size) : 0;
  return std::max(up, size > 0 ? value(size) - value(size - 1) : 0);
}

ValuesOfUpdate of_blocks(const HostArray& kept, scalar::BlockForm form, const HostArray& like) {
  const std::int64_t n = like.numel();
  ValuesOfUpdate v{HostArray::zeros(DType::F32, like.shape)};
  v.values.values.clear();
  for (const double x : KeptState{StateFormat::Block8, form}.read(kept, n))
    v.values.values.emplace_back(x);
  std::vector<std::uint8_t> memory(kept.values.size());
  store_bytes(kept, memory.data());
  const scalar::ConstBlocks blocks(memory.data(), n);
  constexpr double kF32 = 0x1p-20;  // what a few steps in f32 lose
  for (std::int64_t j = 0; j < n; ++j)
    v.apart.push_back(blocks.scales[j / scalar::kBlock] *
                      (step_at(blocks.codes[j], form) + kF32 * double{scalar::kBlockTop}));
  return v;
}

}  // namespace

std::optional<ValuesOfUpdate> values_of_update(Name op, const Attrs& attrs,
                                               const std::vector<HostArray>& out, std::size_t i) {
  const optim::FormulaRecord* formula = formula_of_update(op);
  if (!formula) return std::nullopt;
  const UpdateLayout l = update_layout(update_attrs(attrs), *formula);
  const auto at = [](int place) { return static_cast<std::size_t>(place); };
  for (int t = 0; t < l.count; ++t) {
    const HostArray& parameter = out[at(l.new_parameter(t))];
    if (l.is_split() && i == at(l.new_master(t))) return of_split_master(parameter, out[i]);
    for (int w = 0; w < l.element_states() && l.state_format == StateFormat::Block8; ++w)
      if (i == at(l.new_state(w, t)))
        return of_blocks(out[i], {!formula->is_not_negative(at(w))}, parameter);
  }
  return std::nullopt;
}

bool sums_f32_in_double(Name op, const HostArray& result) {
  if (result.dtype != DType::F64) return false;
  const auto is_its = [&](const optim::FormulaRecord* f) {
    return !f->is_of_tensors && (op == Name(update_op_name(*f)) || op == Name(sums_op_name(*f)));
  };
  return std::ranges::any_of(optim::formulas(), is_its);
}

}  // namespace aloft
