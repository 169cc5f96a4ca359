// The `sentencepiece` kind: anybody's model of SentencePiece, run by SentencePiece, whose ids are
// those of its own Encode(). A text need not come back as it was: most models drop and add spaces.
// Those that give every text back are of the kind `bpe` (bpe_tokenizer.h), which keeps bytes that
// are not UTF-8, too.
#pragma once

#include <memory>
#include <string>

#include "data/tokenizer.h"

namespace aloft {

// `name` is for messages. DataError E0507 where it is no model.
std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(std::string model, const std::string& name);

}  // namespace aloft
