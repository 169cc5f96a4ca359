// The steps of a run that [profile] names, instruction by instruction: profile.json in the run's
// directory, and a table at the end. docs/profile.md is the page.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "observe/profile/summary.h"
#include "run/listener.h"
#include "train/runner.h"
#include "train/session.h"

namespace aloft {

class ProfileFile : public Listener {
 public:
  // `session` and `runner` outlive this, and `text`, where the table goes. `rates`: of
  // TrainOptions.
  ProfileFile(const Session& session, const std::unique_ptr<Runner>& runner,
              std::function<profile::Rates()> rates, std::string& text);
  std::string makes() const override { return "the profile"; }

  void run_begun(const RunBegun& e, Control& run) override;
  void step_begun(const StepBegun& e) override;
  // EnvironmentError E0603, here and at the end.
  void step_done(const StepDone& e, Control& run) override;
  void steps_over(const StepsOver& e) override;
  void run_closing(const RunClosing& e) override;

 private:
  bool is_timed(std::int64_t made) const;
  profile::Source source_of(std::string_view program, int instruction) const;
  void write();

  const Session& session_;
  const std::unique_ptr<Runner>& runner_;
  std::function<profile::Rates()> rates_;
  std::string& text_;
  Path path_;
  profile::Recorder recorder_;
  std::optional<Observing> looking_;  // while a step is timed
  profile::Summary summary_;
  std::vector<double> timed_s_, plain_s_;  // by the host's clock: steps, and those before them
  std::int64_t made_ = 0;                  // steps, by this start of the run
  double begun_s_ = 0;                     // when the step began
  double timer_s_ = 0;
  bool is_written_ = false;
};

}  // namespace aloft
