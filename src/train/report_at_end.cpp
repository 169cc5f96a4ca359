#include "train/report_at_end.h"

#include "base/log.h"

namespace aloft {

void ReportAtEnd::run_ended(const RunEnded& e) {
  try {
    write_(e.folder);
  } catch (const std::exception& error) {
    if (!e.error) throw;
    log_warning("there is no report: {}", error.what());
  }
}

}  // namespace aloft
