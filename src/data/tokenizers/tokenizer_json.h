// Inside: tokenizers that are made here, written as Hugging Face's library `tokenizers` reads them
// (tokenizer.json). Ids of text in UTF-8 are the same; what is not UTF-8 that library never sees.
#pragma once

#include <span>
#include <string>

namespace aloft {

// Of byte pairs: the bytes that each id stands for, "" of the one that stands for nothing. Two that
// stand side by side merge where both together are a piece, those of the lowest id first, as
// SentencePiece merges them. `by_lines`: no piece reaches across the end of a line.
std::string tokenizer_json_of_bytes(std::span<const std::string> pieces, bool by_lines);

// Of characters: each id's; behind them the 256 bytes where there is a `byte_fallback`, else the
// library refuses other characters.
std::string tokenizer_json_of_characters(std::span<const std::string> characters,
                                         bool byte_fallback);

}  // namespace aloft
