// From a template's words to its tree. What Jinja has beyond what chat templates need is refused by
// its name.
#pragma once

#include <string_view>

#include "data/chat/lexer.h"
#include "data/chat/syntax.h"

namespace aloft::chat {

// `source`: source_of(). Throws Mistake: what is not Jinja, or not done here.
Body parse_template(std::string_view source);

}  // namespace aloft::chat
