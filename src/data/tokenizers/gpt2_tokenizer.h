// The `gpt2` kind: byte-level BPE from the two files that OpenAI and Hugging Face publish,
//   vocab.json  {token: id}, each token written with one visible character a byte
//   merges.txt  pairs of tokens, in the order in which they are merged
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "data/tokenizer.h"

namespace aloft {

// The texts of the two files; `name` is for messages. DataError E0509: ids that are not 0 to n-1, a
// byte without a token, a merge of or into what is not in the vocabulary.
std::unique_ptr<Tokenizer> make_gpt2_tokenizer(std::string_view vocab_json,
                                               std::string_view merges_txt,
                                               const std::string& name);

}  // namespace aloft
