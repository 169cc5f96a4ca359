// Times a training step: whole, instruction by instruction, and beside the machine's limit. Steps
// and what they are held against take turns, so that a disturbance of the machine meets both.
#include <optional>

#include "base/process.h"
#include "cli/bench_limit.h"
#include "cli/bench_profile.h"
#include "cli/bench_step.h"
#include "cli/bench_turns.h"
#include "runtime/threads.h"
#include "scalar/median.h"

namespace aloft::cli {
namespace {

using nlohmann::json;
using scalar::upper_median;

class Measuring {
 public:
  Measuring(BenchSubject& subject, const BenchOptions& o)
      : subject_(subject),
        options_(o),
        program_(*subject.programs().plan().find("train")),
        profile_(program_) {
    if (!o.no_limit && !why_no_limit()) limit_.emplace(subject.programs().plan(), program_);
  }

  void run() {
    BenchTurns turns{
        [this] { subject_.step(); }, [this] { timed_step(); }, [this] { profiled_step(); }, {}};
    if (limit_) turns.limit_round = [this] { limit_->measure_round(); };
    take_turns(options_.steps, turns);
    if (times_.size() > 1) times_.erase(times_.begin());  // the process's first step
  }

  json result(double process_start) const {
    const Programs& programs = subject_.programs();
    const double step_ms = upper_median(times_) * 1e3;
    const double update_ms = profile_.update_ms();
    const double bytes = unavoidable_update_bytes(programs.plan());
    json j = subject_.description();
    j.update(
        {{"threads", host_threads().count()},
         {"unit", subject_.unit()},
         {subject_.unit() + "_per_s", static_cast<double>(subject_.units_a_step()) / step_ms * 1e3},
         {"steps_per_s", 1e3 / step_ms},
         {"step_ms", step_ms},
         {"compile_ms", programs.compile_seconds() * 1e3},
         {"startup_ms", (first_ - process_start) * 1e3},
         {"first_step_clock_s", first_},  // for whoever started this and noted the time
         {"planned_peak_bytes", programs.plan().peak_bytes()},
         {"peak_rss_bytes", rss_},
         {"matmul_ms", profile_.products_ms()},
         {"update_ms", update_ms},
         {"update_bytes", bytes},
         {"optimizer_gb_s", update_ms > 0 ? bytes / update_ms / 1e6 : 0},
         {"profiled_steps", profile_times_.size()},
         {"profiled_step_ms", upper_median(profile_times_) * 1e3},
         {"ops", profile_.by_op()},
         {"loss", loss_}});
    if (limit_) limit_->add_to(j, step_ms, profile_);
    j["device"] = device().name();
    if (has_own_clock()) {
      const Features& f = device().features();
      j["device_step_ms"] = upper_median(device_times_) * 1e3;
      j["device_clock_is_default"] = f.f32_flops == 0 || f.memory_bandwidth == 0;
    }
    if (const char* why = why_no_limit()) add_no_limit(j, why);
    return j;
  }

 private:
  void timed_step() {
    const double start = steady_seconds();
    loss_ = subject_.step();
    const double end = steady_seconds();
    times_.push_back(end - start);
    if (first_ == 0) first_ = end;
  }

  void profiled_step() {
    if (profile_times_.empty()) rss_ = peak_rss_bytes();  // of plain steps
    const Observing looking(device(), profile_);
    const double start = steady_seconds();
    const Event begin = device().stream().record();
    subject_.step();
    const Event end = device().stream().record();
    profile_times_.push_back(steady_seconds() - start);
    device_times_.push_back(end.seconds() - begin.seconds());
  }

  Device& device() const { return subject_.programs().device(); }
  // Of a device whose work goes on beside the host, which its calls alone would be timed by.
  bool has_own_clock() const { return device().features().is_asynchronous; }
  // Null where there is one to measure.
  const char* why_no_limit() const {
    if (subject_.micro_batches() > 1)
      return "a step runs several programs, and the limit is that of one";
    return has_own_clock()
               ? "ops are timed by the device's clock, and a limit would be this machine's"
               : nullptr;
  }

  BenchSubject& subject_;
  const BenchOptions& options_;
  const Program& program_;
  Profile profile_;
  std::optional<StepLimit> limit_;
  std::vector<double> times_, profile_times_, device_times_;
  double first_ = 0, loss_ = 0;
  std::uint64_t rss_ = 0;
};

}  // namespace

json measure_bench(BenchSubject& subject, const BenchOptions& o, double process_start) {
  subject.start();
  Measuring measuring(subject, o);
  measuring.run();
  return measuring.result(process_start);
}

}  // namespace aloft::cli
