#include "observe/compare/msprobe_gradients.h"

#include <algorithm>

namespace aloft::compare {

namespace {

std::ptrdiff_t gradients_in(const Entry& e) {
  return std::ranges::count_if(
      e.records, [](const Record& r) { return r.part == Part::Output && r.is_tensor; });
}

// Whether a call takes the tensor of that place at another place, too.
bool takes_it_twice(const Entry& forward, const std::string& place) {
  const auto is_input = [](const Record& r) { return r.part == Part::Input && r.is_tensor; };
  const auto at = std::ranges::find_if(
      forward.records, [&](const Record& r) { return is_input(r) && r.own == place; });
  return at != forward.records.end() && std::ranges::any_of(forward.records, [&](const Record& r) {
           return is_input(r) && r.own != place && r.shape == at->shape && is_same_value(r, *at);
         });
}

// Of arguments that need a gradient not all have one: a last step adds a bias, or views.
bool lacks_gradients(const Entry& backward, const Entry& forward) {
  return gradients_in(backward) < std::ranges::count_if(
                                      forward.records,
                                      [](const Record& r) {
                                        return r.part == Part::Input && r.is_tensor &&
                                               r.requires_grad.value_or(false);
                                      });
}

// Whether neither is msprobe's, or both are.
bool are_of_one_kind(const RecordPair& r) { return r.npu->is_exact == r.bench->is_exact; }

bool gives_backward(const EntryPair& call, const RecordPair& r) {
  return call.npu->direction == Direction::Backward && r.npu->part == Part::Output;
}

}  // namespace

bool are_other_gradients(const EntryPair& call, const EntryPair* forward, const RecordPair& r) {
  if (!gives_backward(call, r) || are_of_one_kind(r)) return false;
  const bool is_npu = !r.npu->is_exact;  // msprobe's
  const Entry& own = is_npu ? *call.npu : *call.bench;
  const Entry* const own_forward = forward ? (is_npu ? forward->npu : forward->bench) : nullptr;
  if (!call.npu->is_module)
    return r.npu->shape != r.bench->shape || (own_forward && lacks_gradients(own, *own_forward));
  return own_forward && gradients_in(*call.npu) != gradients_in(*call.bench) &&
         takes_it_twice(*own_forward, (is_npu ? r.npu : r.bench)->own);
}

bool hands_on_gradient(const EntryPair& call, const RecordPair& r) {
  if (!gives_backward(call, r) || are_of_one_kind(r) || call.npu->is_module) return false;
  const Entry& own = r.npu->is_exact ? *call.bench : *call.npu;
  const Record& given = r.npu->is_exact ? *r.bench : *r.npu;
  return std::ranges::any_of(own.records, [&](const Record& taken) {
    return taken.part == Part::Input && taken.shape == given.shape && is_same_value(taken, given);
  });
}

}  // namespace aloft::compare
