#include "observe/config_check/msprobe_sheets.h"

#include <algorithm>

#include "base/error.h"

namespace aloft::config_check {

namespace {

struct Layout {
  std::string_view section;
  std::vector<std::string> columns;
  std::size_t verdict;  // which of them says whether it is alike
};

const std::vector<Layout>& layouts() {
  static const std::vector<std::string> differences = {"equal", "max_relative_diff",
                                                       "min_relative_diff", "mean_relative_diff",
                                                       "norm_relative_diff"};
  const auto with = [](std::vector<std::string> first) {
    first.insert(first.end(), differences.begin(), differences.end());
    return first;
  };
  static const std::vector<Layout> all = {
      {"env", {"bench_env_name", "cmp_env_name", "bench_value", "cmp_value", "level"}, 4},
      {"pip", {"package", "bench version", "cmp version", "level"}, 3},
      {"dataset", with({"step", "rank", "tag"}), 3},
      {"weights", with({"step", "rank", "weight_name"}), 3},
      {"hyperparameters",
       {"file_name", "bench_para", "cmp_para", "bench_value", "cmp_value", "matched_with", "level"},
       6},
      {"random",
       {"op", "rank", "bench_stack", "cmp_stack", "bench_count", "cmp_count", "check_result"},
       6}};
  return all;
}

XlsxFill fill_of(Level level) {
  return level == Level::Error     ? XlsxFill::Red
         : level == Level::Warning ? XlsxFill::Yellow
                                   : XlsxFill::Green;
}

XlsxSheet sheet_of(const Section& section) {
  const auto layout = std::ranges::find(layouts(), section.name, &Layout::section);
  ensure(layout != layouts().end(), "a section has its sheet");
  XlsxSheet sheet{section.name, layout->columns, {}};
  sheet.columns.emplace_back("advice");
  // Names, values and versions are texts; figures are numbers.
  for (std::size_t c = 0; c < layout->columns.size(); ++c)
    if (const std::string& name = layout->columns[c];
        name != "step" && name != "rank" && !name.ends_with("_diff") && !name.ends_with("_count"))
      sheet.text_columns.push_back(c);
  for (const Finding& f : section.findings) {
    if (f.row.empty()) continue;
    std::vector<std::string> row = f.row;
    if (layout->columns.back() == "level")
      row.emplace_back(name_of(f.level));
    else if (layout->columns.back() == "check_result")
      row.emplace_back(f.level == Level::Pass ? "True" : "False");
    row.push_back(f.advice);
    sheet.fills[{sheet.rows.size(), layout->verdict}] = fill_of(f.level);
    sheet.rows.push_back(std::move(row));
  }
  return sheet;
}

}  // namespace

std::vector<XlsxSheet> msprobe_sheets(const std::vector<Section>& sections) {
  XlsxSheet summary{"summary", {"filename", "pass_check"}, {}};
  for (const Section& s : sections) {
    summary.fills[{summary.rows.size(), 1}] = fill_of(s.level());
    summary.rows.push_back({s.name, std::string(name_of(s.level()))});
  }
  std::vector<XlsxSheet> all = {std::move(summary)};
  for (const Section& s : sections) all.push_back(sheet_of(s));
  return all;
}

}  // namespace aloft::config_check
