#include "run/validation_loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "data/pack.h"

namespace aloft {
namespace {

// Ids that the tokenizer does not know stand for nothing.
std::uint64_t bytes_of(const TokenSource& tokens, const Tokenizer& tokenizer) {
  std::vector<std::uint64_t> length(static_cast<std::size_t>(tokenizer.vocab_size()));
  for (std::size_t id = 0; id < length.size(); ++id)
    length[id] = tokenizer.bytes_of(static_cast<std::int32_t>(id)).size();
  constexpr std::uint64_t kPiece = 1 << 16;
  std::vector<std::int32_t> ids(std::min(kPiece, tokens.size()));
  std::uint64_t sum = 0;
  for (std::uint64_t at = 0; at < tokens.size(); at += ids.size()) {
    ids.resize(std::min(kPiece, tokens.size() - at));
    tokens.read(at, ids);
    for (const std::int32_t id : ids)
      if (static_cast<std::size_t>(id) < length.size()) sum += length[static_cast<std::size_t>(id)];
  }
  return sum;
}

}  // namespace

ValidationLoss validation_loss(double loss, std::optional<double> bytes_a_token) {
  ValidationLoss out{loss, std::exp(loss), std::nullopt};
  if (bytes_a_token) out.bits_per_byte = loss / std::numbers::ln2 / *bytes_a_token;
  return out;
}

std::string loss_text(double x) {
  return std::abs(x) < 1e4 ? fmt::format("{:.4f}", x) : fmt::format("{:.4g}", x);
}

std::string describe(const ValidationLoss& v) {
  std::string text =
      fmt::format("validation loss {} (perplexity {:.4g}", loss_text(v.loss), v.perplexity);
  if (v.bits_per_byte) text += fmt::format(", {} bits per byte", loss_text(*v.bits_per_byte));
  return text + ")";
}

std::optional<double> bytes_a_validation_token(const Dataset& data) {
  if (!data.validation || !data.tokenizer || data.validation->size() == 0) return std::nullopt;
  const std::uint64_t bytes = data.info.validation_bytes > 0
                                  ? data.info.validation_bytes
                                  : bytes_of(*data.validation, *data.tokenizer);
  if (bytes == 0) return std::nullopt;
  return static_cast<double>(bytes) / static_cast<double>(data.validation->size());
}

}  // namespace aloft
