// Training of the `bpe` kind (bpe_tokenizer.h).
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "data/tokenizers/bpe_escape.h"
#include "data/tokenizers/bpe_tokenizer.h"

namespace aloft {
namespace {

// SentencePiece skips what is longer than its limit, so that long lines come in parts.
constexpr std::size_t kLongestLine = 2048;

std::string escaped(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() + bytes.size() / 8);
  for (char c : bytes) text += escape_of(static_cast<unsigned char>(c));
  return text;
}

// The sample as SentencePiece reads it.
class Lines final : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(const std::vector<std::string>& lines) : lines_(lines) {}
  bool done() const override { return at_ == lines_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return lines_[at_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<std::string>& lines_;
  std::size_t at_ = 0;
};

// SentencePiece's alphabet is what it sees: every byte is shown to it once, alone, so that no pair
// comes of it.
std::vector<std::string> with_all_bytes(std::vector<std::string> lines) {
  for (int b = 0; b < 256; ++b) lines.emplace_back(escape_of(static_cast<unsigned char>(b)));
  return lines;
}

}  // namespace

BpeSample::BpeSample(std::uint64_t total, std::uint64_t limit) : total_(total), limit_(limit) {}

void BpeSample::add(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::size_t line = end == std::string_view::npos ? text.size() : end + 1;
    const std::size_t length = std::min(line, kLongestLine);
    // Kept while the share of what is kept is not ahead of the share of what was seen: the sample
    // is spread over the whole text. Products of doubles: the share needs no exactness.
    const double ahead = static_cast<double>(kept_) * static_cast<double>(total_) -
                         static_cast<double>(limit_) * static_cast<double>(seen_);
    if (total_ <= limit_ || ahead <= 0) {
      lines_.push_back(escaped(text.substr(0, length)));
      kept_ += length;
    }
    seen_ += length;
    text.remove_prefix(length);
  }
}

std::uint64_t BpeSample::sensible_limit(std::int32_t vocab) {
  return std::max<std::uint64_t>(std::uint64_t{1} << 20,
                                 512 * static_cast<std::uint64_t>(std::max(0, vocab)));
}

std::unique_ptr<Tokenizer> train_bpe(const BpeSample& sample, std::int32_t vocab) {
  if (vocab < kSmallestBpeVocab)
    throw UserError("E0506", "the vocabulary is too small")
        .saw("vocab " + std::to_string(vocab))
        .need("at least " + std::to_string(kSmallestBpeVocab) + ": the 256 bytes and <unk>")
        .advice("a larger vocab, or tokenizer kind byte");
  if (sample.lines().empty())
    throw DataError("E0504", "no text to make a tokenizer from").advice("check the list of files");
  const std::unordered_map<std::string, std::string> settings = {
      {"model_type", "bpe"},
      {"vocab_size", std::to_string(vocab)},
      {"hard_vocab_limit", "false"},  // a short text may not have that many pieces
      {"normalization_rule_name", "identity"},
      {"add_dummy_prefix", "false"},
      {"remove_extra_whitespaces", "false"},
      {"allow_whitespace_only_pieces", "true"},  // indentation in one token
      {"character_coverage", "1.0"},
      {"max_sentence_length", std::to_string(4 * kLongestLine)},
      {"bos_id", "-1"},
      {"eos_id", "-1"},
      {"pad_id", "-1"},
      {"num_threads", "1"},
      {"minloglevel", "2"},
  };
  std::string model;
  const std::vector<std::string> text = with_all_bytes(sample.lines());
  Lines lines(text);
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings, &lines, &model);
  if (!status.ok())
    throw DataError("E0508", "SentencePiece could not make a tokenizer")
        .saw(status.ToString())
        .advice("another vocab, or more text");
  return load_bpe(std::move(model), true, "the model just trained");
}

}  // namespace aloft
