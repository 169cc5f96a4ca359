// Has the report of a run written when it ends, whatever ends it.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "run/listener.h"

namespace aloft {

class ReportAtEnd : public Listener {
 public:
  // `write`: of TrainOptions::report.
  explicit ReportAtEnd(std::function<void(const Path& run)> write) : write_(std::move(write)) {}
  std::string makes() const override { return "the report"; }
  void run_ended(const RunEnded& e) override;

 private:
  std::function<void(const Path& run)> write_;
};

}  // namespace aloft
