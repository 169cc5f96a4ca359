// Tokens that lie in a file already, whoever wrote it.
#pragma once

#include "data/shard.h"

namespace aloft {

// One of our shards (it begins with "ALOFTSHD"), or a .bin file of llm.c or nanoGPT. The latter do
// not say how large their vocabulary is: give the model's with TokenSource::with_vocab.
// DataError of shard.h and files/token_bin.h.
TokenSource open_tokens(const Path& path, Verify verify = Verify::Payload);

}  // namespace aloft
