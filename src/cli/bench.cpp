// aloft bench step: times the training step of a recipe or of a model by name, and says what share
// of the machine's limit it reaches. The Plan is the one that training runs, nothing lighter.
// (aloft bench generate: bench_generate.cpp.)

#include <ctime>

#include "base/json.h"
#include "base/log.h"
#include "base/output.h"
#include "cli/bench_generate.h"
#include "cli/bench_probe.h"
#include "cli/bench_profile.h"
#include "cli/bench_step.h"
#include "cli/machine.h"
#include "cli/option_checks.h"
#include "cli/verb.h"
#include "recipe/recipe_names.h"

namespace aloft::cli {
namespace {

using nlohmann::json;

double process_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

void print_limit(const json& j) {
  if (!j.contains("limit_ms")) return;
  if (j["limit_ms"].is_null()) {
    print_result("  no limit: {}\n", j["limit_missing"].get<std::string>());
    return;
  }
  print_result(
      "  {:>10.1f} ms limit: products {:.1f} ms ({:.0f} GFLOP/s), update {:.1f} ms of {:.2f} GB\n",
      j["limit_ms"].get<double>(), j["matmul_limit_ms"].get<double>(),
      j["matmul_gflops"].get<double>(), j["update_limit_ms"].get<double>(),
      j["update_bytes"].get<double>() / 1e9);
  print_result("  {:>10.0f} % of it reached, {:.0f} % with products of normal numbers for zeros\n",
               100 * j["limit_fraction"].get<double>(),
               100 * j["limit_normal_fraction"].get<double>());
  print_result("  {:>10.1f} GB/s memory: a sweep, {:.1f} GB/s an update in place\n",
               j["stream_gb_s"].get<double>(), j["update_sweep_gb_s"].get<double>());
}

void print_table(const json& j) {
  const auto mib = [](const json& v) { return v.get<double>() / (1 << 20); };
  const auto unit = j["unit"].get<std::string>();
  const std::string an_example = unit + "_an_example";
  const bool has_own_clock = j.contains("device_step_ms");
  const double step_ms = j[has_own_clock ? "device_step_ms" : "step_ms"];
  print_result("{} {} batch {}{}{} {}, {} threads\n", j["model"].get<std::string>(),
               j["precision"].get<std::string>(), j["batch"].dump(),
               j.contains(an_example) ? " x " + j[an_example].dump() : "",
               j.contains("accumulate") ? " x " + j["accumulate"].dump() : "", unit,
               j["threads"].dump());
  print_result("  {:>10.1f} {}/s   step {:.2f} ms   loss {:.4f}\n",
               j[unit + "_per_s"].get<double>(), unit, j["step_ms"].get<double>(),
               j["loss"].get<double>());
  if (has_own_clock)
    print_result("  {:>10.1f} {}/s by the clock of {}, in which a step takes {:.3f} ms{}\n",
                 j[unit + "_per_s"].get<double>() * j["step_ms"].get<double>() / step_ms, unit,
                 j["device"].get<std::string>(), step_ms,
                 j["device_clock_is_default"].get<bool>()
                     ? " (of rates that nobody said: docs/devices.md)"
                     : "");
  print_result("  {:>10.1f} ms compile  first step after {:.0f} ms\n",
               j["compile_ms"].get<double>(), j["startup_ms"].get<double>());
  print_result("  {:>10.1f} MiB planned, {:.1f} MiB resident at the peak\n",
               mib(j["planned_peak_bytes"]), mib(j["peak_rss_bytes"]));
  print_result("  {:>10.1f} ms in ops with matrix products, update at {:.1f} GB/s\n",
               j["matmul_ms"].get<double>(), j["optimizer_gb_s"].get<double>());
  print_limit(j);
  if (j.contains("probe_cost"))
    print_result(
        "  {:>10.3f} x the step without the probe ({} pairs of steps), parameters {}\n",
        j["probe_cost"].get<double>(), j["probe_pairs"].dump(),
        j["parameters_hash"] == j["parameters_hash_off"] ? "the same to the bit" : "OTHERS");
  print_result("  where the time goes, ms a step: the mean of {} profiled steps of {:.2f} ms\n",
               j["profiled_steps"].dump(),
               has_own_clock ? step_ms : j["profiled_step_ms"].get<double>());
  for (const json& row : j["ops"]) {
    const double ms = row["ms"].get<double>();
    if (ms < 0.01 * step_ms) break;
    print_result("  {:>10.{}f} {} x {} ({})\n", ms, has_own_clock ? 4 : 2, row["count"].dump(),
                 row["op"].get<std::string>(), row["phase"].get<std::string>());
  }
}

}  // namespace

void refuse_option(const BenchOptions& o, const std::string& what) {
  throw UserError("E0724", what + " means nothing for the model " + o.recipe.path)
      .advice("leave it out, or time a recipe (*.toml), which has every key");
}

Action bench_verb(CLI::App& app) {
  const double start = steady_seconds() - process_seconds();
  auto o = std::make_shared<BenchOptions>();
  CLI::App* step = app.add_subcommand("step", "time a training step");
  CLI::App* generate = app.add_subcommand("generate", "time text from a saved model");
  generate->footer("Example:\n  aloft bench generate runs/first");
  const Action time_generate = bench_generate(*generate, start);
  app.require_subcommand(1);
  app.set_help_flag();  // there are two things to time: their options are shown, too
  app.set_help_all_flag("-h,--help", "Print this help message and exit");
  step->add_option("--model,MODEL", o->recipe.path,
                   "a recipe (*.toml), or a family or size of models (aloft recipes)")
      ->capture_default_str();
  add_recipe_keys(*step, o->recipe);
  step->add_option("--batch", o->batch, "examples: sequences, images (default: the recipe's)")
      ->check(at_least(1));
  add_precision(*step, o->precision);
  step->add_option("--steps", o->steps, "timed steps; the first does not count")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  for (const std::string& key : sizes_by_option())
    step->add_option_function<std::string>(
        option_of(key), [o, key](const std::string& value) { o->sizes[key] = value; },
        "model." + key + " of " + families_with("model." + key) + " (default: its own)");
  add_threads(*step, o->threads);
  add_probe(*step, o->probe);
  step->add_option("--probe-every", o->probe_every,
                   "every how many-th step looks (probe.every): its cost is shared by all")
      ->check(CLI::Range(1, 1000))
      ->needs("--probe")
      ->capture_default_str();
  add_device(*step);
  add_json(*step, o->as_json);
  add_no_limit(*step, o->no_limit);
  return [o, start, generate, time_generate] {
    if (generate->parsed()) return time_generate();
    const auto subject = open_bench(*o);
    if (const double load = load_a_processor(); load > kBusy)
      log_warning(
          "other programs run (load {:.1f} a processor): rates will be lower than the machine's, "
          "and steps differ from one another",
          load);
    json j = measure_bench(*subject, *o, start);
    const bool is_looked_at =
        o->probe.empty() ? !subject->looked_at_by().empty() : o->probe != "none";
    if (is_looked_at) measure_probe(*subject, *o, j);
    if (o->as_json)
      print_result("{}\n", json_text(j));
    else
      print_table(j);
    return ExitCode::Ok;
  };
}

}  // namespace aloft::cli
