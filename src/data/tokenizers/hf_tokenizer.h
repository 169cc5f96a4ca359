// The `hf` kind: a tokenizer.json, as Hugging Face's library `tokenizers` writes it. Ids are those
// that the library gives. Whatever the file says and is not known here is refused by name.
//
// A text comes back as the file's decoder gives it, which need not be as it was: a tokenizer may
// lower letters, drop spaces, or know no token for a character.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "data/tokenizer.h"

namespace aloft {

// `name` is for messages; `end_of_text`: the content of the token between documents, where it is
// known. DataError E0519.
std::unique_ptr<Tokenizer> make_hf_tokenizer(std::string tokenizer_json, const std::string& name,
                                             const std::optional<std::string>& end_of_text = {});

}  // namespace aloft
