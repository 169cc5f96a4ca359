// The `byte` kind: 256 ids, the bytes themselves.
#pragma once

#include <memory>

#include "data/tokenizer.h"

namespace aloft {

std::unique_ptr<Tokenizer> make_byte_tokenizer();

}  // namespace aloft
