#include "train/mean_loss.h"

#include "base/interrupt.h"
#include "data/loader.h"

namespace aloft {

std::optional<double> mean_loss(Runner& runner, const TokenSource& tokens, std::int64_t batch,
                                std::int64_t context, std::int64_t batches) {
  TokenLoader loader(tokens, evaluation_options(batch, context));
  double sum = 0;
  std::int64_t count = 0, made = 0;
  while (const Batch* b = loader.next()) {
    if (InterruptScope::asked()) return std::nullopt;
    sum += runner.evaluate(*b) * static_cast<double>(b->counted_targets);
    count += b->counted_targets;
    if (++made == batches) break;
  }
  return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
}

}  // namespace aloft
