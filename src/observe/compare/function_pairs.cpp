#include "observe/compare/function_pairs.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace aloft::compare {

namespace {

using Calls = std::vector<const Entry*>;

// The work of a table for the longest common row; beyond it calls are paired by name alone.
constexpr std::size_t kLargestTable = 25'000'000;

Calls calls_in(const DumpFile& dump, Direction direction) {
  Calls calls;
  for (const Entry& e : dump.entries)
    if (!e.is_module && e.direction == direction) calls.push_back(&e);
  return calls;
}

// What a function does, whoever names it: "add" of "__radd__", "gelu" of "gelu_tanh".
std::string plain_function(const Entry& e) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"gelu_tanh", "gelu"}, {"addmm", "linear"},       {"dense", "linear"},
      {"bmm", "matmul"},     {"batchmatmul", "matmul"}, {"layernorm", "layer_norm"},
      {"radd", "add"},       {"iadd", "add"},           {"rmul", "mul"},
      {"imul", "mul"},       {"multiply", "mul"},       {"rsub", "sub"},
      {"truediv", "div"},    {"gather", "embedding"}};
  std::string name = lower(e.kind);
  if (name.starts_with("__") && name.ends_with("__") && name.size() > 4)
    name = name.substr(2, name.size() - 4);
  while (name.ends_with('_') && name.size() > 1) name.pop_back();
  for (const auto& [theirs, plain] : kNames)
    if (name == theirs) return std::string(plain);
  return name;
}

double given_elements(const Entry& e) {
  for (const Record& r : e.records)
    if (r.part == Part::Output && r.is_tensor) return r.elements();
  return -1;
}

}  // namespace

FunctionPairs::FunctionPairs(const DumpFile& npu, const DumpFile& bench) {
  std::map<std::string_view, const Entry*> named;
  for (const Entry& b : bench.entries)
    if (!b.is_module) named.emplace(b.name, &b);
  for (const Direction direction : {Direction::Forward, Direction::Backward}) {
    const Calls ours = calls_in(npu, direction), theirs = calls_in(bench, direction);
    const auto known =
        std::ranges::count_if(ours, [&](auto* e) { return named.contains(e->name); });
    const bool is_named_alike = 2 * static_cast<std::size_t>(known) >= ours.size();
    if (is_named_alike || ours.size() * theirs.size() > kLargestTable) {
      for (const Entry* e : ours)
        if (const auto it = named.find(e->name); it != named.end()) partners_[e] = it->second;
      continue;
    }
    struct Call {
      std::string name;
      double elements;
      bool operator==(const Call&) const = default;
    };
    const auto plain = [](const Calls& calls) {
      std::vector<Call> all;
      for (const Entry* e : calls) all.push_back({plain_function(*e), given_elements(*e)});
      return all;
    };
    const auto a = plain(ours), b = plain(theirs);
    // longest[i][j]: of the rows that begin at i and j.
    const std::size_t width = b.size() + 1;
    std::vector<std::uint32_t> longest((a.size() + 1) * width, 0);
    for (std::size_t i = a.size(); i-- > 0;)
      for (std::size_t j = b.size(); j-- > 0;)
        longest[i * width + j] =
            a[i] == b[j] ? longest[(i + 1) * width + j + 1] + 1
                         : std::max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
      if (a[i] == b[j])
        partners_[ours[i++]] = theirs[j++];
      else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1])
        ++i;
      else
        ++j;
    }
  }
}

const Entry* FunctionPairs::partner_of(const Entry& npu) const {
  const auto it = partners_.find(&npu);
  return it == partners_.end() ? nullptr : it->second;
}

}  // namespace aloft::compare
