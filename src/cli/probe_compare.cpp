// aloft probe compare NPU BENCH
#include "cli/probe_compare.h"

#include <memory>
#include <string>

#include "base/error.h"
#include "base/output.h"
#include "cli/shared_options.h"
#include "observe/compare/comparison.h"

namespace aloft::cli {

namespace {

struct Options {
  std::string npu, bench, out = "compared", map;
  bool is_strict = false, xlsx = false;
};

ExitCode compare(const Options& o) {
  const auto results = aloft::compare::compare_runs({o.npu, o.bench, o.out, o.map, o.xlsx});
  const aloft::compare::StepResult* first = nullptr;
  for (const auto& r : results) {
    if (!first && r.has_divergence) first = &r;
    print_result("{}\n", r.sentence);
    print_talk("  {}\n", r.files.back().string());
  }
  std::size_t unreadable = 0;
  for (const auto& r : results) unreadable += r.unreadable;
  if (unreadable > 0)
    throw DataError("E0652", "elements of tensors cannot be read")
        .at(o.out)
        .saw(std::to_string(unreadable) + " tensors without; all else is compared")
        .need("in dump_tensor_data what torch.save or numpy.save wrote, as dump.json says")
        .advice("the results name each, and why; make that dump again");
  if (first && o.is_strict)
    throw DivergedError("E0842", "the two runs are not the same").saw(first->sentence);
  return ExitCode::Ok;
}

}  // namespace

Action probe_compare(CLI::App& app) {
  auto o = std::make_shared<Options>();
  app.add_option("npu", o->npu, "dump that is looked at: a dump.json, or a folder with steps")
      ->required();
  app.add_option("bench", o->bench, "dump that it is held against")->required();
  add_results_folder(app, o->out);
  app.add_option(
      "--map", o->map,
      "TOML, YAML or JSON: which module, or value, of the one is which of the other; data, "
      "cell and layer mappings of msprobe, too");
  app.add_flag("--xlsx", o->xlsx, "write the table as a workbook, too");
  add_strict(app, o->is_strict, "a divergence");
  return [o] { return compare(*o); };
}

}  // namespace aloft::cli
