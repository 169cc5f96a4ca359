// What a line of JSON lines comes to in tokens, and which of them a model is to learn to write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/chat/load_chat_template.h"
#include "data/jsonl.h"
#include "data/sequences.h"
#include "data/tokenizer.h"

namespace aloft {

// DataError E0523 where the template's own tokens (bos_token, eos_token) are none of the
// tokenizer's: then it would cut them into pieces that no model knows.
void check_template_tokens(const Tokenizer& tokenizer, const LoadedChatTemplate& form);

// What the tokenizer puts before a text and behind it; nothing where it does not say.
struct TextFrame {
  std::vector<std::int32_t> before, behind;
};
TextFrame text_frame(const Tokenizer& tokenizer);

// Of a text: what the tokenizer puts around one, and the end of text behind it; all is learnt.
// Of a prompt and a completion: the same of both as one text, of which what stands behind as many
// tokens as the prompt alone has is learnt. Of messages: what the chat template writes, with the
// assistant's words learnt (chat/assistant_words.h): each token that has a byte of them.
class JsonlEncoder {
 public:
  // Both outlive this. `form`: of messages, else null. DataError E0523 where the template's own
  // tokens (eos_token) are none of the tokenizer's.
  JsonlEncoder(const Tokenizer& tokenizer, const LoadedChatTemplate* form);

  // The tokens, with kLearntToken where they are learnt. `place`: for messages, "a.jsonl:12".
  // DataErrors of the tokenizer and of the chat template, with the place.
  std::vector<std::uint32_t> tokens_of(const JsonlLine& line, JsonlKind kind,
                                       const std::string& place);

  // Prompts whose own tokens do not begin those of prompt and completion: a token holds the end of
  // the one and the beginning of the other.
  std::uint64_t joined() const { return joined_; }
  const std::string& first_joined() const { return first_joined_; }  // where that was first

 private:
  void add_plain(const JsonlLine& line, JsonlKind kind, const std::string& place);
  void add_messages(const JsonlLine& line);
  void add(std::int32_t id, bool is_learnt);
  std::optional<std::vector<std::size_t>> ends_of(std::string_view text,
                                                  const std::vector<std::int32_t>& ids) const;

  const Tokenizer& tokenizer_;
  const LoadedChatTemplate* form_;
  std::vector<std::int32_t> before_, behind_;  // what the tokenizer puts around a text
  std::vector<std::uint32_t> out_;
  std::uint64_t joined_ = 0;
  std::string first_joined_;
};

}  // namespace aloft
