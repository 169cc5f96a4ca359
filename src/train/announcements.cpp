#include "train/announcements.h"

#include <string>

#include "base/log.h"
#include "run/validation_loss.h"
#include "runtime/threads.h"
#include "train/banner.h"

namespace aloft {

void Announcements::run_begun(const RunBegun& e, Control&) {
  if (quiet_) return;
  const RunPlace place{e.step, e.position};
  std::string text =
      start_banner({session_, data_, e.folder, place, e.tokens, e.planned_bytes, e.compile_s,
                    host_threads().count(), device_before_, e.is_from_cache});
  text.pop_back();
  log_info("{}", text);
}

void Announcements::evaluation_done(const EvaluationDone& e, Control&) {
  if (!quiet_) log_info("step {}: {}", e.step, describe(e.validation));
}

}  // namespace aloft
