#include "infer/stop_strings.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace aloft {

StopStrings::StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {
  if (std::ranges::any_of(strings_, [](const std::string& s) { return s.empty(); }))
    throw UserError("E0700", "a string that ends the text is empty").need("one byte or more");
}

std::string StopStrings::add(std::string_view bytes) {
  if (has_ended_) return "";
  held_ += bytes;
  std::size_t end = std::string::npos;
  for (const std::string& s : strings_) end = std::min(end, held_.find(s));
  if (end != std::string::npos) {
    has_ended_ = true;
    return std::exchange(held_, "").substr(0, end);
  }
  std::size_t back = 0;  // bytes that one may begin with
  for (const std::string& s : strings_)
    for (std::size_t n = std::min(s.size() - 1, held_.size()); n > back; --n)
      if (held_.ends_with(std::string_view(s).substr(0, n))) back = n;
  std::string certain = held_.substr(0, held_.size() - back);
  held_.erase(0, held_.size() - back);
  return certain;
}

std::string StopStrings::rest() { return std::exchange(held_, ""); }

}  // namespace aloft
