// aloft: the command line. Results go to stdout, talk to stderr; exit codes are those of
// base/error.h.
#include <algorithm>
#include <csignal>
#include <exception>
#include <sstream>

#include "backends/catalog.h"
#include "base/output.h"
#include "base/process.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/failure.h"
#include "cli/verb.h"
#include "cli/waiting.h"
#include "frontend/eager.h"
#include "recipe/recipe_names.h"
#include "runtime/threads.h"

namespace {

using namespace aloft;

// The verb that the words name, or the last that they name, and where they go on.
struct Named {
  const CLI::App* verb;
  int next;

  // The verbs behind it that one may choose from; none where all are named.
  std::vector<std::string> verbs() const {
    std::vector<std::string> names;
    for (const CLI::App* sub : verb->get_subcommands({})) names.push_back(sub->get_name());
    return names;
  }
};

Named named_verb(const CLI::App& app, int argc, char** argv) {
  Named at{&app, 1};
  for (; at.next < argc; ++at.next) {
    const auto subs = at.verb->get_subcommands({});
    const auto it = std::find_if(subs.begin(), subs.end(), [&](const CLI::App* sub) {
      return sub->get_name() == argv[at.next];
    });
    if (it == subs.end()) break;
    at.verb = *it;
  }
  return at;
}

// Of a value that is none of an option's, "--task: stats not in {statistics,tensor}", the nearest:
// also one that begins as it does. Words that have commas in them are apart by ", ". "" where
// nothing is near.
std::string value_meant(const std::string& said) {
  const std::size_t begin = said.find(": "), end = said.find(" not in {");
  if (begin == std::string::npos || end == std::string::npos || end < begin + 2) return "";
  const std::string value = said.substr(begin + 2, end - begin - 2);
  std::vector<std::string> values;
  std::string rest = said.substr(end + std::string_view(" not in {").size());
  rest.erase(std::min(rest.find('}'), rest.size()));
  const std::string_view apart = rest.find(", ") == std::string::npos ? "," : ", ";
  for (std::size_t at = 0, next = 0; next != std::string::npos; at = next + apart.size()) {
    next = rest.find(apart, at);
    values.push_back(rest.substr(at, next == std::string::npos ? next : next - at));
  }
  if (const std::string near = nearest_name(value, values); !near.empty()) return near;
  constexpr std::size_t kBeginning = 4;
  for (const std::string& word : values)
    if (value.size() >= kBeginning && word.starts_with(value.substr(0, kBeginning))) return word;
  return "";
}

// "tran" -> "did you mean train?": the nearest verb, or option of the verb, to the first word that
// is neither; "" where nothing is near.
std::string meant(const Named& named, int argc, char** argv) {
  const CLI::App* at = named.verb;
  int i = named.next;
  const std::vector<std::string> verbs = named.verbs();
  if (i < argc && !verbs.empty() && argv[i][0] != '-') {
    const std::string near = nearest_name(argv[i], verbs);
    return near.empty() ? "" : "did you mean " + near + "?";
  }
  std::vector<std::string> options;
  for (const CLI::Option* o : at->get_options())
    for (const std::string& name : o->get_lnames()) options.push_back("--" + name);
  for (; i < argc; ++i) {
    const std::string word = std::string(argv[i]).substr(0, std::string(argv[i]).find('='));
    if (!word.starts_with("--") || word == "--") continue;
    if (std::find(options.begin(), options.end(), word) != options.end()) continue;
    if (at->get_option_no_throw("--set") != nullptr) {
      Recipe recipe;
      if (const std::string key = named_key(word.substr(2), recipe_fields(recipe)); !key.empty())
        return "--set with KEY=VALUE: " + key;
    }
    const std::string near = nearest_name(word, options);
    return near.empty() ? "" : "did you mean " + near + "?";
  }
  return "";
}

// CLI11 says what it did not expect backwards, and of a word where a verb should be nothing.
UserError wrong_line(const CLI::ParseError& e, const CLI::App& app, const Named& at, int argc,
                     char** argv) {
  if (const std::vector<std::string> verbs = at.verbs(); !verbs.empty()) {
    const bool is_option = at.next < argc && argv[at.next][0] == '-';
    UserError wrong("E0700",
                    is_option ? "an option stands before the verb" : "there is no such verb");
    wrong.add_line("saw", at.next < argc ? in_quotes(argv[at.next]) : "none");
    wrong.add_line("need", "one of " + join(verbs, ", "));
    return wrong;
  }
  const std::string said = e.what();
  if (const std::size_t many = said.find(": At Most 1 required"); many != std::string::npos) {
    UserError wrong("E0700", said.substr(0, many) + " is said more than once");
    if (said.starts_with("--probe:"))
      wrong.add_line("try", "one --probe, and beside it trends: --set monitor.on=true");
    return wrong;
  }
  if (const std::string near = value_meant(said); !near.empty())
    return UserError("E0700", said).advice("did you mean " + near + "?");
  const std::vector<std::string> rest = app.remaining(true);
  const bool is_of_extras = e.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
  if (!is_of_extras || rest.empty()) return {"E0700", e.what()};
  return {"E0700", "not expected here: " + join(rest, " ")};
}

// OpenMP takes any number from the environment.
void check_threads() {
  if (host_threads().count() <= kMostThreads) return;
  throw UserError("E0700", "OMP_NUM_THREADS asks for too many threads")
      .saw(std::to_string(host_threads().count()))
      .need("at most " + std::to_string(kMostThreads));
}

int run(int argc, char** argv) {
  use_device(chosen_device);
  set_device_opener(open_device);
  CLI::App app("aloft trains neural networks in mixed precision", "aloft");
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
  if (argc <= 1) {  // as git does: the help, and that something is missing
    print_result(std::string_view(fit_for(Output::Out, app.help())));
    flush_results();
    throw UserError("E0700", "there is no verb").need("one of those above");
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) {  // --help, --version
      std::ostringstream text;
      app.exit(e, text, text);
      print_result(std::string_view(fit_for(Output::Out, text.str())));
      return 0;
    }
    std::string verb;
    for (const CLI::App* at = &app; !at->get_subcommands().empty(); verb += at->get_name() + " ")
      at = at->get_subcommands()[0];
    const Named named = named_verb(app, argc, argv);
    UserError wrong = wrong_line(e, app, named, argc, argv);
    if (const std::string near = meant(named, argc, argv); !near.empty())
      wrong.add_line("try", near);
    wrong.add_line("try", "aloft " + verb + "--help");
    throw wrong;
  }
  open_device("cpu");  // brings the host's threads; ALOFT_DEVICE waits until a verb asks for it
  check_threads();
  return static_cast<int>(chosen());
}

}  // namespace

namespace {
void ask_nothing(int) {}
}  // namespace

int main(int argc, char** argv) {
  // It asks a run for a checkpoint (base/interrupt.h); before there is a run, and behind its end,
  // it asks for nothing, and ends nothing.
  if (std::signal(SIGUSR1, ask_nothing) == SIG_IGN) std::signal(SIGUSR1, SIG_IGN);
  aloft::open_standard_descriptors();
  aloft::cli::wait_briefly(argv);
  aloft::cli::watch_over_the_end();
  int status = 0;
  try {
    status = run(argc, argv);
    aloft::flush_results();
  } catch (...) {
    status = static_cast<int>(aloft::cli::report_failure(std::current_exception()));
  }
  aloft::cli::expect_the_end();
  return status;
}
