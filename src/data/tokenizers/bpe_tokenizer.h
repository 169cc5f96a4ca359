// The `bpe` kind, trained and run by SentencePiece.
//
// SentencePiece by itself does not give text back as it was: it drops and adds spaces, cannot hold
// newlines, tabs and zero bytes in its training text, and reads U+2581 as a space. Here every byte
// is first written as a character of its own (visible ASCII and the space as they are, control
// bytes as Unicode's control pictures, bytes from 128 on as U+0180 to U+01FF), all 256 of which are
// in the vocabulary; so decode(encode(x)) == x for every byte string, by construction.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer.h"

namespace aloft {

// 256 bytes and <unk>, which SentencePiece insists on.
inline constexpr std::int32_t kSmallestBpeVocab = 257;

// What SentencePiece learns from: at most `limit` bytes of lines, spread evenly over the text.
// The same text, in whatever pieces, gives the same sample.
class BpeSample {
 public:
  // `total`: bytes that will be added.
  BpeSample(std::uint64_t total, std::uint64_t limit);
  void add(std::string_view text);  // pieces end at line ends, as safe_cut of `bpe` cuts them
  const std::vector<std::string>& lines() const { return lines_; }

  // Half a kilobyte for each piece and at least a megabyte: more hardly makes better pieces (3.261
  // instead of 3.256 bytes a token from four times as much of the C++ headers).
  static std::uint64_t sensible_limit(std::int32_t vocab);

 private:
  std::uint64_t total_, limit_, seen_ = 0, kept_ = 0;
  std::vector<std::string> lines_;
};

// `vocab` is an upper limit: a short text gives fewer pieces. Deterministic, prints nothing.
// UserError E0506 where vocab < kSmallestBpeVocab; DataError E0504 where there is no text.
std::unique_ptr<Tokenizer> train_bpe(const BpeSample& sample, std::int32_t vocab);

// Where cutting a text does not change its tokens: behind its last line end.
std::size_t cut_at_line_end(std::string_view text);

// A model of SentencePiece: one that train_bpe made (`escaped`), or anybody's. The latter must give
// text back as it was, which needs byte_fallback and no dummy prefix: DataError E0507 otherwise.
// `name` is for messages.
std::unique_ptr<Tokenizer> load_bpe(std::string model, bool escaped, const std::string& name);

}  // namespace aloft
