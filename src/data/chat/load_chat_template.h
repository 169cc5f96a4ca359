// Where models keep their chat templates: files beside their tokenizer.
#pragma once

#include "base/file.h"
#include "data/chat/chat_template.h"

namespace aloft {

struct LoadedChatTemplate {
  ChatTemplate form;
  nlohmann::ordered_json variables;  // of ChatInput: bos_token and the like, where they are known
};

// Of a file with a template; or of a model's folder: chat_template.jinja, else what
// tokenizer_config.json says as "chat_template" (of several by name: "default"). The special tokens
// are those of tokenizer_config.json and special_tokens_map.json beside it. DataError E0540 where
// there is none, or it cannot be read; E0601.
LoadedChatTemplate load_chat_template(const Path& path);

// Whether a model's folder has one, perhaps damaged.
bool has_chat_template(const Path& folder);
// The special tokens alone, of a folder that may have no template.
nlohmann::ordered_json special_tokens_in(const Path& folder);

}  // namespace aloft
