// Writes the samples of a run (run_sample.h): every train.sample_every steps, and at its end.
#pragma once

#include <optional>
#include <string>

#include "data/sample_prompt.h"
#include "data/tokenizer.h"
#include "run/listener.h"
#include "run/run_directory.h"
#include "sources/run_data.h"
#include "train/session.h"

namespace aloft {

class TextSamples : public Listener {
 public:
  // All outlive this; the data has a tokenizer. The newest text is put into `newest`, too.
  TextSamples(const Session& session, const RunData& data, const RunDirectory& directory,
              std::string& newest)
      : session_(session),
        tokenizer_(*data.tokenizer()),
        prompt_(data.sample_prompt()),
        directory_(directory),
        newest_(newest) {}
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
  const std::optional<SamplePrompt> prompt_;
  const RunDirectory& directory_;
  std::string& newest_;
};

}  // namespace aloft
