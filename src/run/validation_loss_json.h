// What metrics.jsonl says of a validation loss.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "run/validation_loss.h"

namespace aloft {

// {"val_loss": 3.01, "val_perplexity": 20.3, "val_bits_per_byte": 1.35}: the loss and each measure;
// what is not finite is null, what is not known is absent.
nlohmann::json json_of(const ValidationLoss& loss);

}  // namespace aloft
