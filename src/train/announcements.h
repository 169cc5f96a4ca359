// What a run says of itself beside its progress: the banner at its start, each validation loss.
#pragma once

#include <string>
#include <utility>

#include "run/listener.h"
#include "sources/run_data.h"
#include "train/session.h"

namespace aloft {

class Announcements : public Listener {
 public:
  // Session and data outlive this. `device_before`: the name of the one that a run which goes on
  // was on; "" where it is not known.
  Announcements(const Session& session, const RunData& data, std::string device_before, bool quiet)
      : session_(session), data_(data), device_before_(std::move(device_before)), quiet_(quiet) {}
  void run_begun(const RunBegun& e, Control& run) override;
  void evaluation_done(const EvaluationDone& e, Control& run) override;

 private:
  const Session& session_;
  const RunData& data_;
  std::string device_before_;
  bool quiet_;
};

}  // namespace aloft
