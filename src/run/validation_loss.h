// The validation loss in the units that people compare.
#pragma once

#include <optional>
#include <string>

namespace aloft {

struct Dataset;

struct ValidationLoss {
  double loss = 0;        // nats a token
  double perplexity = 0;  // e to the loss: a choice among so many equally likely tokens
  // What a byte of the text costs: comparable between tokenizers. Absent where the bytes are not
  // known: tokens without a tokenizer.
  std::optional<double> bits_per_byte;
};

// `bytes_a_token`: of bytes_a_validation_token().
ValidationLoss validation_loss(double loss, std::optional<double> bytes_a_token);

// A loss for people: "3.0123", "8.425e+13".
std::string loss_text(double loss);

// "validation loss 3.0123 (perplexity 20.33, 1.352 bits per byte)".
std::string describe(const ValidationLoss& loss);

// Bytes of the validation text over its tokens; nothing where there is no validation part, or no
// tokenizer that knows the bytes. Reads the tokens once where they were packed elsewhere.
std::optional<double> bytes_a_validation_token(const Dataset& data);

}  // namespace aloft
