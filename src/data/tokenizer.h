// Tokenizers: bytes to ids and back. Every one works on arbitrary byte strings. Of those that are
// made here, and of `gpt2`, decode(encode(x)) == x for all x that they accept: they accept
// everything, except `char` built without byte fallback, which refuses characters outside its
// alphabet. Those that others publish whole (`hf`, `sentencepiece`, `tiktoken`) give a text back as
// their authors say, which may be another one.
// tokenizers/catalog.inc lists the kinds, tokenizers/tokenizer_kind.h says what a kind is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace aloft {

// Ids of a text or of two, and of which of them each is ("token type" of BERT).
struct Framed {
  std::vector<std::int32_t> ids, types;  // one of each for each token
};

// Any kind of tokenizer, in use.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // As in the catalogue: "byte", "hf".
  virtual std::string_view kind() const = 0;
  // Ids are below it.
  virtual std::int32_t vocab_size() const = 0;

  // Appends the ids of `bytes` to `ids`. Thread-safe. DataError E0501 where the vocabulary has
  // nothing for a part of it.
  virtual void encode_to(std::string_view bytes, std::vector<std::int32_t>& ids) const = 0;
  std::vector<std::int32_t> encode(std::string_view bytes) const;

  // Where a text may be taken apart: what stands before `byte` are the first `ids` of its ids, and
  // what stands behind it is encoded as if nothing stood before it. Both hold of every part of the
  // text that begins where it does and reaches to `end` or further; at a shorter one there is no
  // seam.
  struct Seam {
    std::size_t byte, end, ids;
  };
  // encode(), and the seams that it comes by, in their order; none is always right.
  virtual std::vector<std::int32_t> encode_with_seams(std::string_view bytes,
                                                      std::vector<Seam>& seams) const {
    seams.clear();
    return encode(bytes);
  }

  // What one id stands for; empty for an id that stands for nothing (SentencePiece's <unk>).
  // 0 <= id < vocab_size(), UserError E0502 otherwise.
  std::string_view bytes_of(std::int32_t id) const;
  // The text of ids that stand one behind the other: the concatenation of bytes_of, unless the
  // tokenizer's authors say otherwise (a space before the first word left out). TextStream
  // (text_stream.h) gives it while it is being generated. UserError E0502.
  virtual std::string decode(std::span<const std::int32_t> ids) const;

  // Whether an id is for the model and not for readers: the end of a text, a mask.
  virtual bool is_special(std::int32_t id) const {
    const auto end = end_of_text();
    return end && *end == id;
  }
  // A whole text's ids with what the tokenizer puts around one for a model: a token that begins
  // it, [CLS] and [SEP]. Most put nothing.
  virtual std::vector<std::int32_t> framed(std::vector<std::int32_t> ids) const { return ids; }
  // The same of two texts that belong together; nothing where it does not say how.
  virtual std::optional<Framed> framed_pair(std::span<const std::int32_t> first,
                                            std::span<const std::int32_t> second) const {
    static_cast<void>(first), static_cast<void>(second);
    return std::nullopt;
  }

  // The last place at which `text`, to be continued by unknown bytes, may be cut so that encoding
  // the pieces one after the other gives the ids of the whole; 0 where there is none.
  virtual std::size_t safe_cut(std::string_view text) const { return text.size(); }

  // The id written between documents, where the vocabulary has one.
  virtual std::optional<std::int32_t> end_of_text() const { return std::nullopt; }

  // Equal for equal vocabularies and rules; part of shards' headers and cache keys.
  virtual std::uint64_t fingerprint() const = 0;

  // Writes `folder`/aloft_tokenizer.json and what belongs to it, with the fingerprint by which
  // load_tokenizer finds them damaged.
  virtual void save(const Path& folder) const = 0;

 protected:
  virtual std::string_view piece(std::int32_t id) const = 0;
};

// What save() calls its file.
inline constexpr std::string_view kTokenizerFile = "aloft_tokenizer.json";

// From a folder that save() wrote, or from files that others publish (TokenizerKind::published).
// DataError E0503 where there is none of these or it is damaged.
std::unique_ptr<Tokenizer> load_tokenizer(const Path& path);
// Of which kind it is, without building it. DataError E0503 as above.
std::string kind_of_tokenizer(const Path& path);
// Whether there is one of these, perhaps damaged; and what they are, for messages.
bool is_tokenizer(const Path& path);
std::string tokenizer_forms();

}  // namespace aloft
