// Inside: a conversation as templates are given it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "data/chat/value.h"

namespace aloft {
struct ChatInput;
}

namespace aloft::chat {

// messages, tools, documents, add_generation_prompt and the variables, by name. What a message
// says as "reasoning_content", "thinking" or "reasoning" it says as the first two, as transformers
// has it. Failure where messages are no list of objects.
std::vector<std::pair<std::string, Value>> variables_of(const ChatInput& input);

}  // namespace aloft::chat
