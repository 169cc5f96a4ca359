#include "observe/compare/execution_order.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

namespace aloft::compare {

namespace {

using Call = std::pair<std::string, std::int64_t>;

struct Span {
  double first = 0, last = 0;
};

int depth_of(const Entry& e) {
  if (!e.is_module) return 1000;  // within any module
  return 1 + static_cast<int>(std::ranges::count(e.path, '.'));
}

// Where calls of the forward pass stand in the file; of modules, from the first to the last of what
// lies in them.
class Positions {
 public:
  explicit Positions(const Pairs& pairs) {
    std::map<std::string, std::int64_t> calls;  // of a module
    double at = 0;
    for (const EntryPair& p : pairs.entries) {
      const Entry& e = *p.npu;
      at += 1;
      if (e.direction != Direction::Forward) continue;
      own_[{e.path, e.call}] = at;
      if (e.is_module) calls[e.path] = std::max(calls[e.path], e.call + 1);
    }
    for (const auto& [call, position] : own_) spans_[call] = {position, position};
    for (const auto& [call, position] : own_)
      for (std::size_t dot = call.first.rfind('.'); dot != std::string::npos && dot > 0;
           dot = call.first.rfind('.', dot - 1)) {
        const std::string outer = call.first.substr(0, dot);
        const auto it = calls.find(outer);
        if (it == calls.end()) continue;
        // Of several calls the one with the same number; of one, everything in it.
        const auto span = spans_.find({outer, it->second == 1 ? 0 : call.second});
        if (span == spans_.end()) continue;
        span->second.first = std::min(span->second.first, position);
        span->second.last = std::max(span->second.last, position);
      }
  }

  const Span* of(const Entry& e) const {
    const auto it = spans_.find({e.path, e.call});
    return it == spans_.end() ? nullptr : &it->second;
  }

 private:
  std::map<Call, double> own_;
  std::map<Call, Span> spans_;
};

}  // namespace

std::vector<Moment> moments_of(const Pairs& pairs) {
  const Positions positions(pairs);
  const auto is_backward = [](const EntryPair& p) {
    return p.npu->direction == Direction::Backward || p.npu->direction == Direction::ParametersGrad;
  };
  // Aloft numbers ops of the backward pass as that pass comes to them, and lists them so.
  const auto follows_forward = [&](const EntryPair& p) {
    return is_backward(p) && p.npu->tap.empty();
  };
  const auto known = std::ranges::count_if(pairs.entries, [&](const EntryPair& p) {
    return follows_forward(p) && positions.of(*p.npu) != nullptr;
  });
  const bool is_known = 2 * known >= std::ranges::count_if(pairs.entries, follows_forward);

  struct Placed {
    std::tuple<int, double, int, int, std::size_t> key;
    Moment moment;
  };
  std::vector<Placed> placed;
  double last = 0;  // where a backward call stands whose forward one is not known
  for (std::size_t i = 0; i < pairs.entries.size(); ++i) {
    const EntryPair& p = pairs.entries[i];
    const Span* const forward = positions.of(*p.npu);
    Span span{static_cast<double>(i), static_cast<double>(i)};
    if (!is_backward(p)) {
      if (forward) span = *forward;
    } else if (is_known && follows_forward(p)) {
      if (forward)
        span = {-forward->last, -forward->first};
      else
        span = {last, last};
      last = span.last;
    }
    const bool is_update = p.npu->direction == Direction::ParametersUpdate;
    const int pass = is_update ? 2 : is_backward(p) ? 1 : 0, depth = depth_of(*p.npu);
    if (p.npu->direction != Direction::ParametersGrad && !is_update)
      placed.push_back({{pass, span.first, 0, depth, i}, {&p, false}});
    placed.push_back({{pass, span.last, 1, -depth, i}, {&p, true}});
  }
  std::ranges::sort(placed, {}, &Placed::key);
  std::vector<Moment> moments;
  for (const Placed& p : placed) moments.push_back(p.moment);
  return moments;
}

}  // namespace aloft::compare
