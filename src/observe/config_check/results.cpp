#include "observe/config_check/results.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "files/xlsx.h"
#include "observe/config_check/msprobe_sheets.h"

namespace aloft::config_check {

using Json = nlohmann::ordered_json;

Json json_of(const Side& a, const Side& b, const std::vector<Section>& sections) {
  Json checks = Json::array();
  for (const Section& s : sections) {
    Json findings = Json::array();
    for (const Finding& f : s.findings)
      findings.push_back({{"level", name_of(f.level)},
                          {"a_name", f.a_name},
                          {"b_name", f.b_name},
                          {"a_value", f.a_value},
                          {"b_value", f.b_value},
                          {"matched", f.matched},
                          {"advice", f.advice}});
    checks.push_back(
        {{"name", s.name}, {"level", name_of(s.level())}, {"findings", std::move(findings)}});
  }
  return {{"verdict", name_of(verdict(sections))},
          {"a", a.name},
          {"b", b.name},
          {"checks", std::move(checks)}};
}

void write_results(const Path& folder, const Side& a, const Side& b,
                   const std::vector<Section>& sections) {
  make_folder(folder);
  write_file_atomic(folder / "result.json", json_text(json_of(a, b, sections), 1));
  write_xlsx(folder / "result.xlsx", msprobe_sheets(sections));
  write_file_atomic(folder / "result.html", page_of(a, b, sections));
}

}  // namespace aloft::config_check
