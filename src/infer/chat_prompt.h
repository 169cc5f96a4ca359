// From a conversation to the tokens that a model goes on from.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/chat/load_chat_template.h"
#include "infer/saved_model.h"

namespace aloft {

// The template of `file`, or where that is empty the one beside the model. DataError E0540 where
// there is none, and of load_chat_template(); E0523 where its own tokens are not the tokenizer's.
// `advice`: what to try where there is none.
LoadedChatTemplate chat_template_of(const SavedModel& saved, const Path& file,
                                    const std::string& advice);

class ChatPrompt {
 public:
  // With chat_template_of(). The model outlives this. The same errors.
  ChatPrompt(const SavedModel& saved, const Path& file);

  // The conversation as the model wants it written, up to where its answer begins. `tools`: what a
  // template is told of them; null: none. DataError E0541, E0542.
  std::string text(const nlohmann::ordered_json& messages,
                   const nlohmann::ordered_json& tools = nullptr) const;
  // What such a text is in tokens: special ones are those that it names.
  std::vector<std::int32_t> tokens(const std::string& text) const;
  // The tokens that end an answer: those that end the model's texts, and what the template is told
  // as eos_token.
  const std::vector<std::int32_t>& ends() const { return ends_; }

 private:
  const Tokenizer& tokenizer_;
  LoadedChatTemplate template_;
  std::vector<std::int32_t> ends_;
};

}  // namespace aloft
