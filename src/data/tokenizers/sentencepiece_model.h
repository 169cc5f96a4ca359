// How files that are to be models of SentencePiece are opened, by every kind that reads them.
#pragma once

#include <string>

#include "base/error.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace aloft {

// DataError E0507 of the file `name`.
DataError unusable_model(const std::string& name, const std::string& saw, const std::string& need);

// E0507 where the bytes are no model, or one without pieces. `name` is for messages.
void open_model(sentencepiece::SentencePieceProcessor& into, const std::string& bytes,
                const std::string& name);

}  // namespace aloft
