#include "train/call_numbers.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "observe/probe/tap_words.h"

namespace aloft {

namespace {

// "h.0.mlp/gelu", 1 and ".1" of "h.0.mlp/gelu#1.1".
struct Parts {
  std::string_view called, rest;
  int number = 0;
};

std::optional<Parts> parts_of(std::string_view name) {
  const std::size_t count = name.rfind('#');
  if (name.starts_with(probe::kParameter) || count == std::string_view::npos) return std::nullopt;
  Parts parts{name.substr(0, count), {}, 0};
  const char* const end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + count + 1, end, parts.number);
  if (read.ec != std::errc()) return std::nullopt;
  parts.rest = std::string_view(read.ptr, static_cast<std::size_t>(end - read.ptr));
  return parts;
}

}  // namespace

void CallNumbers::next_run(const std::set<std::string>& names) {
  before_ = so_far_;
  called_.clear();
  for (const std::string& name : names) {
    const auto parts = parts_of(name);
    if (!parts) continue;
    const std::string called(parts->called);
    const auto known = before_.find(called);
    int& so_far = so_far_[called];
    so_far = std::max(so_far, (known == before_.end() ? 0 : known->second) + parts->number + 1);
    called_.insert(called);
  }
}

std::string CallNumbers::of_call(std::string_view name) const {
  const auto parts = parts_of(name);
  if (!parts) return std::string(name);
  const auto before = before_.find(parts->called);
  if (before == before_.end()) return std::string(name);
  return std::string(parts->called) + "#" + std::to_string(before->second + parts->number) +
         std::string(parts->rest);
}

int CallNumbers::calls_before(std::string_view module) const {
  const auto before = before_.find(std::string(probe::kCall) + std::string(module));
  return before == before_.end() ? 0 : before->second;
}

bool CallNumbers::calls(std::string_view module) const {
  return called_.contains(std::string(probe::kCall) + std::string(module));
}

}  // namespace aloft
