// aloft: the command line. Results go to stdout, talk to stderr; exit codes are those of
// base/error.h.
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "backends/cpu/cpu_backend.h"
#include "base/log.h"
#include "cli/verb.h"
#include "frontend/eager.h"

namespace {

using namespace aloft;

int run(int argc, char** argv) {
  CLI::App app("aloft trains neural networks in mixed precision");
  app.set_version_flag("--version", ALOFT_VERSION);
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::help);
  cli::Action chosen;
  for (const cli::Verb& verb : cli::verbs()) {
    CLI::App* sub = app.add_subcommand(std::string(verb.name), std::string(verb.summary));
    sub->footer("Example:\n  " + std::string(verb.example));
    cli::Action action = verb.setup(*sub);
    sub->callback([&chosen, action] { chosen = action; });
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
    const auto verbs = app.get_subcommands();
    throw UserError("E0700", e.what())
        .advice("aloft " + (verbs.empty() ? "" : verbs[0]->get_name() + " ") + "--help");
  }
  use_backend(cpu_backend());
  return static_cast<int>(chosen());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const aloft::Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return static_cast<int>(e.exit_code());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "error E0401: out of memory\n");
    return static_cast<int>(aloft::ExitCode::Environment);
  } catch (const std::exception& e) {
    fmt::print(stderr, "error E9000: {}\n", e.what());
    return static_cast<int>(aloft::ExitCode::Internal);
  }
}
