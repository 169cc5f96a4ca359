// Writes the samples of a run (run_sample.h): every train.sample_every steps, and at its end.
#pragma once

#include <string>

#include "data/tokenizer.h"
#include "run/listener.h"
#include "run/run_directory.h"
#include "train/session.h"

namespace aloft {

class TextSamples : public Listener {
 public:
  // All outlive this. The newest text is put into `newest`, too.
  TextSamples(const Session& session, const Tokenizer& tokenizer, const RunDirectory& directory,
              std::string& newest)
      : session_(session), tokenizer_(tokenizer), directory_(directory), newest_(newest) {}
  std::string makes() const override { return "the last sample"; }
  bool lacks_at(const Standing& standing) const override { return lacks(standing.step); }
  // What was written behind the state that the run goes on from is of a course that it has left.
  void run_begun(const RunBegun& e, Control& run) override;
  void rolled_back(const RolledBack& e) override;
  // Interrupted (interrupt.h) where a signal came first: a resume draws the sample.
  void step_settled(const StepSettled& e, Control& run) override;
  void run_closing(const RunClosing& e) override;

 private:
  Path path_of(std::int64_t step) const;
  bool lacks(std::int64_t step) const;
  void remove_behind(std::int64_t step) const;
  void draw(std::int64_t step);

  const Session& session_;
  const Tokenizer& tokenizer_;
  const RunDirectory& directory_;
  std::string& newest_;
};

}  // namespace aloft
