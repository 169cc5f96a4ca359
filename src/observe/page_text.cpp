#include "observe/page_text.h"

#include "base/error.h"

namespace aloft {

std::string json_for_script(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json)
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  return out;
}

std::string fill_page(
    std::string_view page,
    std::span<const std::pair<std::string_view, std::string_view>> placeholders_and_contents) {
  std::string out;
  for (const auto& [placeholder, content] : placeholders_and_contents) {
    const std::size_t at = page.find(placeholder);
    ensure(at != std::string_view::npos, "a page has every placeholder, in order");
    out.append(page.substr(0, at)).append(content);
    page.remove_prefix(at + placeholder.size());
  }
  return out.append(page);
}

}  // namespace aloft
