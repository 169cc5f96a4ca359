// What a run says of itself beside its progress: the banner at its start, each validation loss.
#pragma once

#include "data/pack.h"
#include "train/listener.h"
#include "train/session.h"

namespace aloft {

class Announcements : public Listener {
 public:
  // Both outlive this.
  Announcements(const Session& session, const Dataset& data, bool quiet)
      : session_(session), data_(data), quiet_(quiet) {}
  void run_begun(const RunBegun& e, Control& run) override;
  void evaluation_done(const EvaluationDone& e, Control& run) override;

 private:
  const Session& session_;
  const Dataset& data_;
  bool quiet_;
};

}  // namespace aloft
