// Losses in words, and what follows from those of text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tasks/measure.h"

namespace aloft {

// A loss for people: "3.0123", "8.425e+13".
std::string loss_text(double loss);

// Of a loss in nats a token: perplexity, e to the loss, a choice among so many equally likely
// tokens; and bits per byte, what a byte of the text costs, comparable between tokenizers, where
// the bytes of a token are known.
std::vector<Measure> measures_of_text(double loss, std::optional<double> bytes_a_token);

}  // namespace aloft
