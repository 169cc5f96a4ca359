// aloft probe compare NPU BENCH
#include "cli/probe_compare.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/output.h"
#include "cli/made_folder.h"
#include "cli/one_line.h"
#include "cli/shared_options.h"
#include "observe/compare/comparison.h"
#include "observe/compare/steps.h"

namespace aloft::cli {

namespace {

struct Options {
  std::string npu, bench, out = "compared", map;
  bool is_strict = false, xlsx = false, as_json = false;
};

using Results = std::vector<aloft::compare::StepResult>;

// What the text says, of one step as of several.
void print_document(const Options& o, const Results& results, const std::string& alone) {
  nlohmann::ordered_json all = aloft::compare::steps_json(results, alone);
  if (results.size() == 1) all["sentence"] = results[0].sentence;
  all["diverges"] = std::ranges::any_of(results, &aloft::compare::StepResult::has_divergence);
  all["out"] = o.out;
  for (std::size_t i = 0; i < results.size(); ++i)
    all["steps"][i]["unreadable"] = results[i].unreadable;
  print_result("{}\n", json_text(all, 1));
}

void print_text(const Options& o, const Results& results, const std::string& alone) {
  for (const auto& r : results) {
    print_result("{}\n", one_line(r.sentence));
    if (results.size() == 1) print_talk("  {}\n", r.files.back().string());
  }
  if (results.size() > 1) {
    print_result("{}\n", one_line(aloft::compare::summary_of(results, alone)));
    print_talk("  {}\n", (Path(o.out) / "compare_result.html").string());
  }
}

// `alone`: the steps and processes that were not compared.
Results results_of(const Options& o, std::string& alone) {
  MadeFolder made(o.out);
  try {
    return aloft::compare::compare_runs({o.npu, o.bench, o.out, o.map, o.xlsx}, &alone);
  } catch (...) {  // no empty folder is left
    made.take_away();
    throw;
  }
}

ExitCode compare(const Options& o) {
  std::string alone;
  const Results results = results_of(o, alone);
  if (o.as_json)
    print_document(o, results, alone);
  else
    print_text(o, results, alone);
  std::size_t unreadable = 0;
  for (const auto& r : results) unreadable += r.unreadable;
  if (unreadable > 0)
    throw DataError("E0652", "values of tensors cannot be read")
        .at(o.out)
        .saw(std::to_string(unreadable) + " tensors without; all else is compared")
        .need(
            "numbers in dump.json, and in dump_tensor_data what torch.save or numpy.save wrote, as "
            "dump.json says")
        .advice("the results name each, and why; make that dump again");
  if (!o.is_strict) return ExitCode::Ok;
  using Result = aloft::compare::StepResult;
  if (const auto it = std::ranges::find_if(results, &Result::has_divergence); it != results.end())
    throw DivergedError("E0842", "the two runs are not the same").saw(one_line(it->sentence));
  const auto is_part = [](const Result& r) { return !r.lacks.empty(); };
  if (const auto it = std::ranges::find_if(results, is_part); it != results.end())
    throw DivergedError("E0842", "the two runs were compared in part")
        .saw(one_line(it->sentence))
        .need("dumps of the same passes and calls")
        .advice(
            "make both at the same level, with the same scope, in a step of training or both "
            "without one");
  if (!alone.empty())
    throw DivergedError("E0842", "the two runs were compared in part")
        .saw("not compared: " + one_line(alone))
        .need("of each step a dump of both runs")
        .advice("dump the same steps of both, or name the folders of single steps");
  return ExitCode::Ok;
}

}  // namespace

Action probe_compare(CLI::App& app) {
  auto o = std::make_shared<Options>();
  app.add_option("npu", o->npu, "dump that is looked at: a dump.json, or a folder with steps")
      ->required();
  app.add_option("bench", o->bench, "dump that it is held against")->required();
  add_results_folder(app, o->out);
  app.add_option("--map", o->map,
                 "which name of one dump is which of the other, or msprobe's mapping");
  app.add_flag("--xlsx", o->xlsx, "write the table as a workbook, too");
  add_strict(app, o->is_strict, "a divergence, or what one run lacks");
  add_json(app, o->as_json, "an object, with the steps in a list");
  return [o] { return compare(*o); };
}

}  // namespace aloft::cli
