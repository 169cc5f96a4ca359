#include "observe/compare/execution_order.h"

#include <algorithm>
#include <map>
#include <optional>
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

// The path of what lies around a module; "" of none.
std::string around(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

// Whether it takes a tensor, or something at which nobody looked. What takes none, as what fills
// constants, has no place: programs may compute it before all else.
bool takes_something(const Entry& e) {
  return std::ranges::any_of(e.records, [](const Record& r) {
    return r.part == Part::Input && (r.is_tensor || r.type == "N/A");
  });
}

// Where calls of a pass stand in the file; of modules, from the first to the last of what lies in
// them.
class Positions {
 public:
  Positions(const Pairs& pairs, Direction direction) {
    double at = 0;
    for (const EntryPair& p : pairs.entries) {
      const Entry& e = *p.npu;
      if (e.direction == direction) {
        spans_[{e.path, e.call}] = {at, at};
        if (e.is_module) calls_[e.path].emplace(e.call, at);
      }
      at += 1;
    }
    at = 0;
    for (const EntryPair& p : pairs.entries) {
      const Entry& e = *p.npu;
      if (e.direction == direction) add_to_modules(e, at);
      at += 1;
    }
  }

  const Span* of(const Entry& e) const {
    const auto it = spans_.find({e.path, e.call});
    return it == spans_.end() ? nullptr : &it->second;
  }

 private:
  void add_to_modules(const Entry& e, double at) {
    if (!e.is_module && (!e.caller || !takes_something(e))) return;
    std::string outer = e.is_module ? around(e.path) : *e.caller;
    for (; !outer.empty(); outer = around(outer)) {
      const auto calls = calls_.find(outer);
      if (calls == calls_.end()) continue;
      const auto call = e.is_module ? call_around(calls->second, e.call)
                                    : call_that_ends_behind(calls->second, at);
      if (!call) continue;
      const auto span = spans_.find({outer, *call});
      if (span == spans_.end()) continue;
      span->second.first = std::min(span->second.first, at);
      span->second.last = std::max(span->second.last, at);
    }
  }

  using Calls = std::map<std::int64_t, double>;  // of a module, each with its place
  // Of several calls the one with the same number; of one, everything in it.
  static std::optional<std::int64_t> call_around(const Calls& calls, std::int64_t number) {
    return calls.rbegin()->first == 0 ? 0 : number;
  }
  // A call of a module stands behind the functions in it.
  static std::optional<std::int64_t> call_that_ends_behind(const Calls& calls, double at) {
    std::optional<std::int64_t> nearest;
    for (const auto& [number, end] : calls)
      if (end > at && (!nearest || end < calls.at(*nearest))) nearest = number;
    return nearest;
  }

  std::map<std::string, Calls> calls_;
  std::map<Call, Span> spans_;
};

}  // namespace

std::vector<Moment> moments_of(const Pairs& pairs) {
  const Positions positions(pairs, Direction::Forward), backwards(pairs, Direction::Backward);
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
  // Beside such ops modules stand where the file has them.
  const bool has_ops = std::ranges::any_of(pairs.entries, [&](const EntryPair& p) {
    return p.bench && is_backward(p) && !follows_forward(p);
  });

  const auto is_call_of_module = [](const EntryPair& p) {
    return p.npu->is_module && p.npu->direction == Direction::Backward;
  };

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
    } else if (has_ops) {
      if (const Span* const own = backwards.of(*p.npu); own && is_call_of_module(p)) span = *own;
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
