#include "observe/report/report.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/log.h"
#include "observe/page_text.h"
#include "observe/report/curves.h"
#include "observe/report/profile.h"
#include "observe/report/trends.h"

namespace aloft {

using nlohmann::json;

// Generated at build time from page/ and the chart library (CMakeLists.txt).
namespace report_page {
std::string_view page();
std::string_view style();
std::string_view tables_script();
std::string_view charts_script();
std::string_view trends_script();
std::string_view chart_library();
}  // namespace report_page

namespace {

json read_record(const Path& path) {
  if (!path_exists(path))
    throw DataError("E0643", "the folder is no run")
        .at(path.parent_path().string())
        .saw("no run.json in it")
        .advice("name the run directory that holds metrics.jsonl and checkpoints/");
  json record = parse_json(read_file(path));
  if (!record.is_object() || !record.contains("recipe") || !record["recipe"].is_object())
    throw DataError("E0643", "run.json is not the record of a training run")
        .at(path.string())
        .need("a JSON object as `aloft train` writes it")
        .advice("name the run directory that holds metrics.jsonl and checkpoints/");
  return record;
}

// The steps behind which the run was gone on with.
std::vector<double> resumes_of(const json& run) {
  std::vector<double> steps;
  if (const auto history = run.find("history"); history != run.end() && history->is_array())
    for (const json& entry : *history)
      if (entry.is_object())
        if (const auto step = entry.find("step"); step != entry.end() && step->is_number())
          steps.push_back(step->get<double>());
  return steps;
}

// What train/written_file.h says; of `aloft probe run` it lies beside the run. Null: no probe.
json written_by_probe(const Path& run) {
  const Path whole = std::filesystem::absolute(run / "run.json").parent_path();
  Path path = whole / "probe" / "written.json";
  if (!path_exists(path) && whole.filename() == "run") path = whole.parent_path() / "written.json";
  if (!path_exists(path)) return nullptr;
  json written = parse_json(read_file(path));
  if (written.is_object()) return written;
  return nullptr;
}

// A page shows the beginning of a sample; the file has all of it.
std::string newest_sample(const Path& folder) {
  constexpr std::size_t kShown = 1 << 20;
  Path newest;
  for (const Path& path : list_folder(folder))
    if (path.extension() == ".txt") newest = path;
  if (newest.empty()) return "";
  std::string text(kShown + 1, '\0');
  text.resize(InputFile(newest).read_at(0, text));
  if (text.size() <= kShown) return text;
  text.resize(kShown);
  return text + "\n... (" + newest.filename().string() + " has the rest)";
}

}  // namespace

std::string report_page_of(const Path& run) {
  json data;
  data["run"] = read_record(run / "run.json");
  const Path metrics = run / "metrics.jsonl";
  const bool has_metrics = path_exists(metrics);
  if (!has_metrics) log_warning("{} is gone: the report has no curves", metrics.string());
  const std::string lines = has_metrics ? read_file(metrics) : "";
  data["curves"] = curves_of(lines, resumes_of(data["run"]));
  data["trends"] = trends_of(lines, run.string());
  const Path profile = run / "profile.json";
  data["profile"] = path_exists(profile) ? profile_of(read_file(profile)) : json();
  data["name"] = std::filesystem::absolute(run / "run.json").parent_path().filename().string();
  data["probe"] = written_by_probe(run);
  data["sample"] = newest_sample(run / "samples");
  const std::string text = json_for_script(json_text(data));
  const std::pair<std::string_view, std::string_view> parts[] = {
      {"{{style}}", report_page::style()},
      {"{{data}}", text},
      {"{{chart_library}}", report_page::chart_library()},
      {"{{tables_script}}", report_page::tables_script()},
      {"{{charts_script}}", report_page::charts_script()},
      {"{{trends_script}}", report_page::trends_script()}};
  return fill_page(report_page::page(), parts);
}

void write_report(const Path& run) { write_file_atomic(run / "report.html", report_page_of(run)); }

}  // namespace aloft
