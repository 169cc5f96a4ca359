// The validation loss of a state: over the whole of a part of the data, or its first batches.
#pragma once

#include <cstdint>
#include <optional>

#include "data/token_source.h"
#include "train/runner.h"

namespace aloft {

// Nats a token, over the counted targets of `tokens` in batches of batch x context; of the first
// `batches` alone where that is above 0. Nothing where there is no target, or a signal asks for the
// end meanwhile (interrupt.h). The errors of data/loader.h.
std::optional<double> mean_loss(Runner& runner, const TokenSource& tokens, std::int64_t batch,
                                std::int64_t context, std::int64_t batches);

}  // namespace aloft
