// The `tiktoken` kind: the files in which OpenAI's tiktoken keeps byte-level vocabularies, a token
// in base64 and its rank a line. How text is split into words stands in no file: the file's name
// says which of tiktoken's encodings it is.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "data/tokenizer.h"

namespace aloft {

// `encoding`: "cl100k_base" and the like. DataError E0519: a name that is not known, lines that are
// not that, a byte without a token, a rank that two have or that a special token needs.
std::unique_ptr<Tokenizer> make_tiktoken_tokenizer(std::string file, std::string_view encoding,
                                                   const std::string& name);

}  // namespace aloft
