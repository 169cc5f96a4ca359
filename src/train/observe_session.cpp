#include "train/observe_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/folder_lock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "frontend/eager_taps.h"
#include "frontend/loop_taps.h"
#include "frontend/onlooker.h"
#include "frontend/programs.h"
#include "observe/probe/overflow.h"
#include "recipe/msprobe_config.h"
#include "recipe/recipe.h"
#include "train/loop_words.h"
#include "train/overflow_changes.h"
#include "train/overflow_file.h"
#include "train/probe_taps.h"
#include "train/probe_writer.h"
#include "train/session_timing.h"
#include "train/step_values.h"

namespace aloft::observe {

namespace {

constexpr const char* kUsualFolder = "probed";
constexpr const char* kReplaced =
    "the step has several values by this name, and one of them is written: of gradients of a "
    "parameter that it updates several times, and of what compiled functions and eager calls both "
    "have, the last; of a parameter that a function reads without a call of its module, the first";
constexpr std::size_t kMostNamed = 4;

struct Asked {
  ProbeSection probe;
  ProfileSection profile;
  std::string out;
};

std::string list_of(const auto& values) { return json_text(nlohmann::json(values)); }

// As a recipe has them: what is wrong with a field is no mistake in an option of a command line.
std::string text_of(const std::vector<Override>& set) {
  std::string text;
  for (const Override& one : set) text += one.key + " = " + one.value + "\n";
  return text;
}

Asked read(const SessionOptions& o) {
  std::vector<Override> of_config, set;
  std::string out = o.out;
  const bool is_msprobes = o.config.ends_with(".json");
  if (is_msprobes) {
    const MsprobeConfig config = read_msprobe_config(o.config, o.task);
    of_config = config.probe;
    if (out.empty()) out = config.dump_path;
  }
  const auto say = [&](const char* key, const std::string& value) { set.push_back({key, value}); };
  if (!is_msprobes && (!o.task.empty() || o.config.empty()))
    say("probe.task", '"' + (o.task.empty() ? "statistics" : o.task) + '"');
  if (!o.level.empty()) say("probe.level", '"' + o.level + '"');
  if (!o.at.empty()) say("probe.at", list_of(o.at));
  if (o.every) say("probe.every", std::to_string(*o.every));
  if (o.histograms) say("probe.histograms", *o.histograms ? "true" : "false");
  if (!o.list.empty()) say("probe.list", list_of(o.list));
  if (o.profile) say("profile.steps", std::to_string(*o.profile));
  set = with_said(std::move(of_config), set);
  const bool is_file = !o.config.empty() && !is_msprobes;
  const Recipe recipe =
      is_file ? load_recipe(o.config, set) : parse_recipe(text_of(set), "SessionOptions");
  const ProbeSection& probe = recipe.probe;
  if (recipe.monitor.on)
    throw UserError("E0872", "a session has no monitor")
        .at(o.config)
        .saw("monitor.on = true")
        .need("a config that asks for none, such as one with the table [probe] alone")
        .advice("a recipe's run has one: `aloft train`, run_training()");
  const bool is_timed_alone = probe.task == "none" && recipe.profile.steps > 0;
  if (probe.task == "acc_check" || (probe.task == "none" && !is_timed_alone))
    throw UserError("E0872", "a session does not have this task")
        .saw("probe.task = " + in_quotes(probe.task))
        .need(
            "\"statistics\", \"tensor\", \"overflow\" or \"structure\"; \"none\" where "
            "profile.steps "
            "is above 0")
        .advice("`aloft probe run` has acc_check, of a recipe");
  return {probe, recipe.profile, out.empty() ? kUsualFolder : out};
}

}  // namespace

namespace {

// The folder of a session while it has begun: no other one writes there.
class HeldFolder {
 public:
  HeldFolder() = default;
  explicit HeldFolder(Path folder) : folder_(std::move(folder)) {
    make_folder(folder_);
    lock_ = std::make_unique<FolderLock>(folder_ / "session.lock");
  }
  HeldFolder(HeldFolder&&) = default;
  HeldFolder& operator=(HeldFolder&&) = default;
  ~HeldFolder() {
    if (!lock_) return;
    lock_.reset();
    std::error_code is_not_empty;  // something was written
    std::filesystem::remove(folder_, is_not_empty);
  }

 private:
  Path folder_;
  std::unique_ptr<FolderLock> lock_;
};

// That which looks at a thread, also between the steps that it looks at.
thread_local const void* session_of_thread = nullptr;

}  // namespace

class Session::State {
 public:
  explicit State(Asked asked)
      : probe_(std::move(asked.probe)), out_(std::move(asked.out)), timing_(asked.profile) {
    for (const Look look : looks_of(probe_)) {
      if (look == Look::Nothing) continue;
      const AskedTaps taps = taps_of(look, probe_, {}, nullptr);
      const auto ran = [this](const Programs& programs, const std::string& program) {
        for (const RefusedTap& tap : programs.refused_taps(program))
          if (!is_loop_tap(tap.name)) refused_.push_back(tap);
        if (probe_.task == "overflow") return look_for_overflow(programs, program);
        values_.add(programs, program);
        words_.add(programs, program, current_->compiled);
      };
      looks_.emplace(std::piecewise_construct, std::forward_as_tuple(look),
                     std::forward_as_tuple(taps, ran));
    }
  }

  void start() {
    if (is_begun_) throw out_of_turn("start()", "a session that has begun", "stop() before it");
    if (session_of_thread || current_onlooker() || EagerTaps::are_looking())
      throw UserError("E0871", "another session looks at this thread")
          .saw("start() of a second session")
          .need("one session at a time: stop() of the other")
          .advice("one session with level \"mix\" has calls of modules and ops");
    HeldFolder folder{Path(out_)};
    if (step_ == 0 && !writer_ && !overflows_ && probe_.task != "none") refuse_old_dump(out_);
    folder_ = std::move(folder);
    thread_ = std::this_thread::get_id();
    is_begun_ = has_begun_ = true;
    session_of_thread = this;
    look();
  }

  void step() {
    check("step()");
    timing_.step_is_over(out_);
    const auto current = std::exchange(current_, nullptr);
    stop_looking();
    try {
      if (current) write(*current);
    } catch (...) {  // the next step is another one
      begin_next();
      throw;
    }
    begin_next();
  }

  void drop() {
    check("drop()");
    stop_looking();
    current_ = nullptr;
    forget_step();
    log_warning("step {} of a session is dropped: nothing of what it held so far is written",
                step_);
    look_into_step();
  }

  void stop() {
    check("stop()");
    timing_.stop(out_);
    stop_looking();
    if (holds_something())
      log_warning("stop() of a session in step {}, without its step(): nothing of it is written",
                  step_);
    current_ = nullptr;
    forget_step();
    is_begun_ = false;
    session_of_thread = nullptr;
    const HeldFolder held = std::move(folder_);  // to the last file
    if (writer_) writer_->finish();
    if (overflows_) overflows_->finish();
  }

  // Nobody can take what a thread is told of from another one.
  bool looks_at_another_thread() const {
    return is_begun_ && thread_ != std::this_thread::get_id();
  }

  ~State() {
    if (is_begun_) session_of_thread = nullptr;
    if (has_begun_ && std::uncaught_exceptions() == 0) tell_what_was_not_seen();
  }

  std::int64_t steps() const { return step_; }
  const std::string& out() const { return out_; }
  const std::string& profile() const { return timing_.text(); }

 private:
  struct Looks {
    Looks(const AskedTaps& asked, const Onlooker::Ran& ran) : eager(asked), compiled(asked, ran) {}
    EagerTaps eager;
    Onlooker compiled;
  };

  void tell_what_was_not_seen() const {
    timing_.tell_if_nothing_was_timed();
    if (probe_.task == "none") return;
    if (step_ == 0)
      return log_warning("a session of observe:: ends without a step(): nothing is written to {}",
                         out_);
    std::vector<std::string> never;
    for (const std::int64_t at : probe_.at)
      if (at >= step_) never.push_back(std::to_string(at));
    if (!never.empty())
      log_warning("a session of observe:: was to look at step {}, and ends behind {}{}",
                  join(never, ", "), counted(step_, "step"),
                  writer_ || overflows_ ? "" : ": nothing is written");
  }

  static UserError out_of_turn(const std::string& call, const std::string& saw,
                               const std::string& need) {
    return UserError("E0870", call + " of a session is not its turn").saw(saw).need(need);
  }

  void check(const std::string& call) const {
    if (!is_begun_) throw out_of_turn(call, "a session that has not begun", "start() before it");
    if (thread_ != std::this_thread::get_id())
      throw UserError("E0871", "a session is used on another thread than the one it looks at")
          .saw(call + " of another thread")
          .need("the thread that called start()");
  }

  void stop_looking() {
    hears_.reset();
    looking_.reset();
    scope_.reset();
  }

  // Of the step that is made, once nothing is looked at any more.
  bool holds_something() const {
    return current_ && (has_run_ || !values_.values().empty() || !current_->eager.shown().empty());
  }

  void forget_step() {
    values_.clear();
    words_ = {};
    refused_.clear();
    has_run_ = false;
    first_ = decision_ = nullptr;
  }

  void begin_next() {
    forget_step();
    ++step_;
    look();
  }

  // Of the programs that a step runs, the first that stops to be finite says where.
  void look_for_overflow(const Programs& programs, const std::string& program) {
    has_run_ = true;
    const auto read = programs.output<double>(program, kAllStatistics).read();
    if (!first_.is_null()) return;
    first_ =
        probe::OverflowFinder(*programs.plan().find(program)).first({read.data(), read.size()});
    if (!first_.is_null()) decision_ = overflow_decision(programs.decisions(program), first_);
  }

  void write_overflow(const Looks& looks) {
    if (!has_run_ && looks.eager.shown().empty()) refuse_empty_step();
    // What a program was given may be what an eager call made.
    if (first_.is_null() || !first_.contains("op"))
      if (auto of_calls = first_overflow(looks.eager);
          first_.is_null() || (!of_calls.is_null() && of_calls.contains("op"))) {
        first_ = std::move(of_calls);
        decision_ = nullptr;
      }
    if (!overflows_) overflows_.emplace(out_, "");
    if (first_.is_null()) return overflows_->add(step_, nullptr);
    // The step is the program's, and over: nothing can be tried on it.
    const nlohmann::ordered_json not_tried = untried_changes(first_);
    overflows_->add(step_, std::move(first_), {{"decision", decision_}, {"not_tried", not_tried}});
    if (const std::string text = untried_changes_text(decision_, not_tried); !text.empty())
      log_info("{}", text.substr(0, text.size() - 1));
  }

  [[noreturn]] void refuse_empty_step() const {
    throw UserError("E0873", "a step of a session held nothing that could be looked at")
        .saw("step " + std::to_string(step_) + ", in which this thread called no module and no op")
        .need("step() behind each step that this thread makes, and start() before the first");
  }

  // At the step that begins.
  void look() {
    timing_.step_begins(step_);
    look_into_step();
  }

  void look_into_step() {
    const auto found = looks_.find(look_at(probe_, step_));
    if (found == looks_.end()) return;
    if (probe_.task == "structure" && writer_) return;  // it is known
    current_ = &found->second;
    looking_.emplace(current_->eager);
    scope_.emplace(&current_->compiled);
    hears_.emplace([this](LoopWord word, const Tensor& value, const UpdatedBy* by) {
      words_.hear(word, value, by);
    });
  }

  void write(Looks& looks) {
    if (probe_.task == "overflow") return write_overflow(looks);
    values_.add(looks.eager);
    if (values_.values().empty()) refuse_empty_step();
    std::map<std::string, std::string> classes = looks.eager.classes();
    for (const auto& [path, kind] : looks.compiled.classes()) classes.emplace(path, kind);
    std::vector<probe::DumpedModule> modules;
    for (const auto& [path, kind] : classes) modules.push_back({path, kind});
    if (!writer_) writer_.emplace(probe_, out_);
    std::vector<RefusedTap> missing = refused_;
    for (RefusedTap& tap : looks.eager.missing()) missing.push_back(std::move(tap));
    for (const std::string& name : values_.replaced()) missing.push_back({name, kReplaced});
    tell_what_was_replaced();
    writer_->write_missing(missing);
    const auto find = [&](const std::string& tap) { return values_.find(tap); };
    const ProbeWriter::Seen seen = writer_->of(values_.values(), modules, find);
    if (probe_.task == "structure") return writer_->write_structure(seen);
    writer_->write(step_, seen, values_.all(), words_.training());
  }

  // Once: a program that updates a parameter twice does so in every step.
  void tell_what_was_replaced() {
    const std::set<std::string>& names = values_.replaced();
    if (names.empty() || std::exchange(has_told_, true)) return;
    std::vector<std::string> first(names.begin(), names.end());
    const std::size_t rest = first.size() - std::min(first.size(), kMostNamed);
    first.resize(first.size() - rest);
    log_warning(
        "step {}: {}{} {} there more than once, and one alone is written (missing.json says which)",
        step_, join(first, ", "), rest > 0 ? fmt::format(" and {} more", rest) : "",
        names.size() == 1 ? "was" : "were");
  }

  ProbeSection probe_;
  std::string out_;
  std::map<Look, Looks> looks_;
  HeldFolder folder_;                          // while it has begun
  std::optional<ProbeWriter> writer_;          // from the first step that is written
  std::optional<OverflowFile> overflows_;      // the same of task "overflow"
  bool is_begun_ = false, has_begun_ = false;  // now; ever
  std::thread::id thread_;
  std::int64_t step_ = 0;
  // Of the step that is made.
  Looks* current_ = nullptr;
  std::optional<EagerTaps::Looking> looking_;
  std::optional<OnlookerScope> scope_;
  std::optional<LoopTaps> hears_;
  StepValues values_;
  LoopWords words_;
  std::vector<RefusedTap> refused_;       // by all programs that have run
  bool has_run_ = false;                  // a program, with taps
  bool has_told_ = false;                 // of values that others replaced
  nlohmann::ordered_json first_ = {};     // of task "overflow"; null: all was finite
  nlohmann::ordered_json decision_ = {};  // of what made it
  SessionTiming timing_;
};

Session::Session(const SessionOptions& options) : state_(std::make_unique<State>(read(options))) {}
Session::~Session() {
  if (!state_ || !state_->looks_at_another_thread()) return;
  log_warning("a session ends on another thread than it looks at, without a stop(): it stays");
  static std::mutex one_at_a_time;
  static std::vector<std::unique_ptr<State>> those_that_stay;
  const std::lock_guard<std::mutex> lock(one_at_a_time);
  those_that_stay.push_back(std::move(state_));
}

void Session::start() { state_->start(); }
void Session::step() { state_->step(); }
void Session::drop() { state_->drop(); }
void Session::stop() { state_->stop(); }
std::int64_t Session::steps() const { return state_->steps(); }
const std::string& Session::out() const { return state_->out(); }
const std::string& Session::profile() const { return state_->profile(); }

}  // namespace aloft::observe
