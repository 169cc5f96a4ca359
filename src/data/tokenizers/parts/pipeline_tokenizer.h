// A tokenizer put together from published parts: added tokens are found, what lies between them is
// brought into its normal form, cut into words, and each word becomes ids.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "data/tokenizer.h"
#include "data/tokenizers/parts/added_tokens.h"
#include "data/tokenizers/parts/decoders.h"
#include "data/tokenizers/parts/normalizers.h"
#include "data/tokenizers/parts/post_processor.h"
#include "data/tokenizers/parts/pre_tokenizers.h"
#include "data/tokenizers/parts/word_model.h"

namespace aloft::parts {

struct TokenizerParts {
  std::vector<std::unique_ptr<Normalizer>> normalizers;
  PreTokenizer pre_tokenizer;
  std::unique_ptr<WordModel> model;
  std::vector<AddedToken> added;
  PostProcessor frame;
  std::vector<std::unique_ptr<Decoder>> decoders;
};

// What a kind adds is its name, its fingerprint and how it is saved.
class PipelineTokenizer : public Tokenizer {
 public:
  PipelineTokenizer(TokenizerParts parts, std::optional<std::int32_t> end_of_text);
  ~PipelineTokenizer() override;

  std::int32_t vocab_size() const override { return size_; }
  // Bytes that are not UTF-8 count as U+FFFD. DataError E0501 where the model has no token for a
  // word and none for what is unknown.
  void encode_to(std::string_view bytes, std::vector<std::int32_t>& ids) const override;
  // Seams: where an added token begins that looks at nothing beside it.
  std::vector<std::int32_t> encode_with_seams(std::string_view bytes,
                                              std::vector<Seam>& seams) const override;
  std::string decode(std::span<const std::int32_t> ids) const override;
  std::size_t safe_cut(std::string_view text) const override;
  std::optional<std::int32_t> end_of_text() const override { return end_of_text_; }
  bool is_special(std::int32_t id) const override;
  std::vector<std::int32_t> framed(std::vector<std::int32_t> ids) const override;
  std::optional<Framed> framed_pair(std::span<const std::int32_t> first,
                                    std::span<const std::int32_t> second) const override {
    return parts_.frame.frame(first, second);
  }

 protected:
  std::string_view piece(std::int32_t id) const override;
  // What the files call a token; 0 <= id < vocab_size().
  std::string token_text(std::int32_t id) const;

 private:
  struct Workspace;
  class Lease;

  void encode_part(std::string_view text, bool is_first, Workspace& w,
                   std::vector<std::int32_t>& ids) const;
  void encode_words(std::string_view text, bool is_first, Workspace& w,
                    std::vector<std::int32_t>& ids) const;
  void encode_known(std::string_view word, Workspace& w, std::vector<std::int32_t>& ids) const;
  void encode_word(std::string_view word, Workspace& w, std::vector<std::int32_t>& ids) const;
  void find_added_tokens();
  void make_pieces() const;
  const std::string* added_text(std::int32_t id) const;
  bool has_token(std::int32_t id) const;

  TokenizerParts parts_;
  std::optional<std::int32_t> end_of_text_;
  TokenFinder plain_, normalized_;      // in the text as it is, in its normal form
  std::vector<std::int32_t> added_at_;  // by id: where in parts_.added; -1: the model's
  std::int32_t size_ = 0;
  bool may_cut_ = false;

  mutable std::mutex spaces_lock_;
  mutable std::vector<std::unique_ptr<Workspace>> spaces_;  // those that nobody works in
  mutable std::once_flag pieces_made_;
  mutable std::vector<std::string> pieces_;
};

}  // namespace aloft::parts
