#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "observe/config_check/results.h"
#include "observe/page_text.h"

namespace aloft {

// Generated at build time from page/ and the report's style (CMakeLists.txt).
namespace config_check_page {
std::string_view page();
std::string_view style();
std::string_view script();
}  // namespace config_check_page

namespace config_check {

std::string page_of(const Side& a, const Side& b, const std::vector<Section>& sections) {
  const std::string data = json_for_script(json_text(json_of(a, b, sections)));
  const std::pair<std::string_view, std::string_view> parts[] = {
      {"{{style}}", config_check_page::style()},
      {"{{data}}", data},
      {"{{script}}", config_check_page::script()}};
  return fill_page(config_check_page::page(), parts);
}

}  // namespace config_check
}  // namespace aloft
