#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "observe/compare/results.h"
#include "observe/page_text.h"

namespace aloft {

// Generated at build time from page/ and the report's style (CMakeLists.txt).
namespace compare_page {
std::string_view page();
std::string_view style();
std::string_view script();
}  // namespace compare_page

namespace compare {

std::string page_of(const Comparison& c) { return page_of(json_of(c)); }

std::string page_of(const nlohmann::ordered_json& results) {
  const std::string data = json_for_script(json_text(results));
  const std::pair<std::string_view, std::string_view> parts[] = {
      {"{{style}}", compare_page::style()},
      {"{{data}}", data},
      {"{{script}}", compare_page::script()}};
  return fill_page(compare_page::page(), parts);
}

}  // namespace compare
}  // namespace aloft
