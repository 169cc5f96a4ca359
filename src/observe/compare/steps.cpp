#include "observe/compare/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/folder.h"

namespace aloft::compare {

namespace {

std::string place_of(const StepResult& r) {
  return r.step + (r.step.empty() || r.rank.empty() ? "" : " ") + r.rank;
}

// compare_result.csv, and those of a step or a process: compare_result_step0_rank1.html.
bool is_result(const Path& file) {
  constexpr std::string_view kName = kResults;
  const std::string stem = file.stem().string(), kind = file.extension().string();
  if (!stem.starts_with(kName) ||
      (kind != ".csv" && kind != ".json" && kind != ".html" && kind != ".xlsx"))
    return false;
  const std::string_view rest = std::string_view(stem).substr(kName.size());
  return rest.empty() || rest.starts_with("_step") || rest.starts_with("_rank") ||
         rest.starts_with("_proc");
}

}  // namespace

std::string without_text(const std::string& alone) {
  return alone.empty() ? "" : "; not compared: " + alone;
}

std::string summary_of(const std::vector<StepResult>& results, const std::string& alone) {
  const bool are_steps = std::ranges::all_of(results, [](auto& r) { return r.rank.empty(); });
  const char* const word = are_steps ? "steps" : "dumps of steps and processes";
  const auto parted = std::ranges::count_if(results, &StepResult::has_divergence);
  const auto partial =
      std::ranges::count_if(results, [](const StepResult& r) { return !r.lacks.empty(); });
  std::string text = fmt::format("no divergence in {} {}", results.size(), word);
  if (const auto first = std::ranges::find_if(results, &StepResult::has_divergence);
      first != results.end())
    text = fmt::format("first at {}: {}; {} of {} {} part", place_of(*first), first->finding,
                       parted, results.size(), word);
  if (const auto first =
          std::ranges::find_if(results, [](const StepResult& r) { return !r.lacks.empty(); });
      first != results.end())
    text += fmt::format("; {} compared in part: {}: {}", partial, place_of(*first), first->lacks);
  if (const auto first =
          std::ranges::find_if(results, [](const StepResult& r) { return !r.remark.empty(); });
      first != results.end())
    text += "; no divergence: " + first->remark;
  return text + without_text(alone);
}

nlohmann::ordered_json steps_json(const std::vector<StepResult>& results,
                                  const std::string& alone) {
  auto steps = nlohmann::ordered_json::array();
  for (const StepResult& r : results) {
    auto files = nlohmann::ordered_json::array();
    for (const Path& file : r.files) files.push_back(file.filename().string());
    steps.push_back({{"step", r.step},
                     {"rank", r.rank},
                     {"diverges", r.has_divergence},
                     {"lacks", r.lacks},
                     {"sentence", r.sentence},
                     {"files", std::move(files)}});
  }
  return {{"sentence", summary_of(results, alone)}, {"steps", std::move(steps)}};
}

void replace_results(const Path& written, const Path& folder) {
  std::set<Path> names;
  for (const Path& file : list_folder(written)) {
    rename_durably(file, folder / file.filename());
    names.insert(file.filename());
  }
  for (const Path& file : list_folder(folder))
    if (is_result(file) && is_file(file) && !names.contains(file.filename()))
      std::filesystem::remove(file);
}

}  // namespace aloft::compare
