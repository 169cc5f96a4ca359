#include "train/work_of_call.h"

#include "observe/redo/bit_watch.h"
#include "ops/evaluate.h"
#include "ops/op.h"

namespace aloft {

profile::Work work_of_call(const OpEvent& e) {
  const std::vector<Name> symbols = e.call.symbols();
  std::vector<TensorType> in, out;
  profile::Work work;
  const auto bind = [&](std::vector<TensorType>& to, const std::vector<TensorType>& types) {
    for (const TensorType& t : types) {
      to.push_back(redo::bound_type(t, symbols, e.lengths));
      work.bytes += static_cast<double>(to.back().max_bytes());
    }
  };
  bind(in, e.call.in);
  bind(out, e.call.out);
  const OpDef* op = find_op(e.call.op);
  if (!op) return work;
  SymbolValues lengths;
  for (std::size_t s = 0; s < symbols.size() && s < e.lengths.size(); ++s)
    lengths[symbols[s]] = e.lengths[s];
  const Attrs attrs = bind_lengths(e.call.attrs, lengths);
  const Cost cost = op->cost(attrs, in, out);
  work.flops = cost.flops;
  work.bytes = cost.bytes;
  work.has_products = op->products && !op->products(attrs, in, out).empty();
  if (!in.empty()) work.type = in.front().dtype;
  return work;
}

}  // namespace aloft
