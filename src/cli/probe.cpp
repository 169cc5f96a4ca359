// aloft probe: its verbs
#include "cli/probe_acc_check.h"
#include "cli/probe_check_config.h"
#include "cli/probe_compare.h"
#include "cli/probe_redo.h"
#include "cli/probe_run.h"
#include "cli/verb.h"

namespace aloft::cli {

Action probe_verb(CLI::App& app) {
  CLI::App* run = app.add_subcommand("run", "make steps of a recipe, and write what they hold");
  CLI::App* compare = app.add_subcommand("compare", "say where two dumps part first");
  CLI::App* check = app.add_subcommand("acc-check", "make dumped calls again, in double");
  CLI::App* redo = app.add_subcommand("redo", "make a recorded step again, bit for bit");
  CLI::App* config =
      app.add_subcommand("check-config", "say in what two runs differ, before they run");
  const auto example = [](CLI::App* of, const char* line) {
    of->footer(std::string("Example:\n  ") + line);
  };
  example(compare, "aloft probe compare ported original --out compared");
  example(check, "aloft probe acc-check calls --out checked");
  example(redo, "aloft probe redo runs/gpt --step 811");
  example(config, "aloft probe check-config a.toml train.sh");
  app.require_subcommand(1);
  app.set_help_flag();  // there are several things to do: their options are shown, too
  app.set_help_all_flag("-h,--help", "Print this help message and exit");
  return [run, redo, check, config, runs = probe_run(*run), compares = probe_compare(*compare),
          redoes = probe_redo(*redo), checks = probe_acc_check(*check),
          checks_config = probe_check_config(*config)] {
    if (run->parsed()) return runs();
    if (check->parsed()) return checks();
    if (config->parsed()) return checks_config();
    return redo->parsed() ? redoes() : compares();
  };
}

}  // namespace aloft::cli
