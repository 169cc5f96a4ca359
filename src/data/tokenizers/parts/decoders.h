// How tokens become text again: the part `decoder` of tokenizer.json.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/tokenizers/parts/expression.h"
#include "data/tokenizers/parts/json_place.h"

namespace aloft::parts {

// A step from the tokens' texts to texts that stand one behind the other.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual void apply(std::vector<std::string>& tokens, MatchSpace& space) const = 0;
  // Whether it gives each token the bytes that its letters stand for, whatever stands around it.
  virtual bool reads_byte_letters() const { return false; }
  // Whether it takes the tokens <0x00> to <0xFF> for bytes.
  virtual bool reads_byte_tokens() const { return false; }
};

// A Sequence is as many as it holds. E0519: a type, a key or a value that is not known.
std::vector<std::unique_ptr<Decoder>> read_decoders(const JsonPlace& place);

// The one for tokens in the letters of bytes.
std::unique_ptr<Decoder> byte_letters_decoder();

// The text; without a decoder tokens are words with a space between them.
std::string decode(const std::vector<std::unique_ptr<Decoder>>& all,
                   std::vector<std::string> tokens, MatchSpace& space);

// The byte of "<0x0A>"; -1 of any other token.
int byte_of_token(std::string_view token);

}  // namespace aloft::parts
