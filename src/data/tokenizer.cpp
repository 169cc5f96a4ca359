#include "data/tokenizer.h"

#include "base/error.h"

namespace aloft {

std::vector<std::int32_t> Tokenizer::encode(std::string_view bytes) const {
  std::vector<std::int32_t> ids;
  encode_to(bytes, ids);
  return ids;
}

std::string_view Tokenizer::bytes_of(std::int32_t id) const {
  if (id < 0 || id >= vocab_size())
    throw UserError("E0502", "no such token")
        .saw("id " + std::to_string(id))
        .need("0 to " + std::to_string(vocab_size() - 1));
  return piece(id);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  for (std::int32_t id : ids) text += bytes_of(id);
  return text;
}

}  // namespace aloft
