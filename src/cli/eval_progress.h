// How far an evaluation is, on stderr: a line in place on a terminal, now and then a plain line
// elsewhere. Ctrl-C ends it with what was seen until then.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace aloft::cli {

class EvalProgress {
 public:
  // `unit`: what is counted, "window".
  explicit EvalProgress(std::string unit);
  ~EvalProgress();
  EvalProgress(const EvalProgress&) = delete;
  EvalProgress& operator=(const EvalProgress&) = delete;

  // So many of all are done, and come to that: "loss 3.21".
  void show(std::int64_t done, std::int64_t all, const std::string& so_far);
  // Calls `work`, which calls show(). Interrupted (interrupt.h), which then says how far
  // it came.
  void watch(const std::function<void()>& work);

 private:
  std::string text(double left, std::size_t width) const;

  std::string unit_, so_far_;
  std::int64_t done_ = 0, all_ = 0;
  double started_, drawn_ = 0;
  std::size_t width_ = 0;  // of the line in place; 0: there is none
  bool is_quiet_, is_terminal_;
};

}  // namespace aloft::cli
