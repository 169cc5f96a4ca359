#include "train/text_samples.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/folder.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "checkpoint/checkpoint_folder.h"
#include "infer/run_sample.h"
#include "train/trainer.h"

namespace aloft {

Path TextSamples::path_of(std::int64_t step) const {
  return directory_.samples() / fmt::format("step-{:06}.txt", step);
}

bool TextSamples::lacks(std::int64_t step) const { return !path_exists(path_of(step)); }

void TextSamples::remove_behind(std::int64_t step) const {
  for (const Path& path : list_folder(directory_.samples())) {
    if (path.extension() != ".txt" || step_in_name(path.stem().string()).value_or(0) <= step)
      continue;
    std::error_code error;
    std::filesystem::remove(path, error);
    if (error) log_warning("cannot remove {}: {}", path.string(), error.message());
  }
}

void TextSamples::run_begun(const RunBegun& e, Control&) { remove_behind(e.step); }

void TextSamples::rolled_back(const RolledBack& e) {
  remove_behind(e.step);
  newest_.clear();
}

// That of a step which was made before the run went on may be there already: then it stays.
void TextSamples::step_settled(const StepSettled& e, Control&) {
  const std::int64_t every = session_.recipe.train.sample_every;
  if (every <= 0 || e.step % every != 0 || e.is_last) return;
  if (e.is_resumed && !lacks(e.step)) return;
  try {
    draw(e.step);
  } catch (const Interrupted&) {  // the run ends here anyway
  }
}

void TextSamples::run_closing(const RunClosing& e) {
  if (!e.error && e.result.exit == ExitCode::Ok) draw(e.step);
}

// A model that cannot be sampled is no reason to lose the run's end.
void TextSamples::draw(std::int64_t step) {
  try {
    newest_ = draw_run_sample(*session_.task->writer(), tokenizer_, prompt_,
                              session_.recipe.train.sample_tokens, session_.recipe.train.seed);
  } catch (const DivergedError& e) {
    return log_warning("no sample: {}", e.what());
  }
  write_file_atomic(path_of(step), newest_);
}

}  // namespace aloft
