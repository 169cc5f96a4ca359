// The steps of an observe::Session that are timed, op by op: docs/profile.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "observe/profile/recorder.h"
#include "recipe/recipe.h"

namespace aloft {

class SessionTiming {
 public:
  explicit SessionTiming(const ProfileSection& profile);

  // On the thread whose steps they are, on its current device.
  void step_begins(std::int64_t step);
  // Behind the last of them FOLDER/profile.json is written: EnvironmentError E0603.
  void step_is_over(const std::string& folder);
  // What was timed by then is all.
  void stop(const std::string& folder);

  const std::string& text() const { return text_; }
  void tell_if_nothing_was_timed() const;

 private:
  bool is_timed(std::int64_t step) const;
  void write(const std::string& folder);

  ProfileSection profile_;
  profile::Recorder recorder_;
  std::optional<Observing> looking_;  // while a step is timed
  std::int64_t step_ = 0;
  bool is_written_ = false;
  std::string text_;
};

}  // namespace aloft
