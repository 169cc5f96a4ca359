#include "data/chat/token_stream.h"

#include "base/text.h"

namespace aloft::chat {

std::string TokenStream::description(const Token& token) {
  switch (token.kind) {
    case TokenKind::Text:
      return "text between tags";
    case TokenKind::VariableBegin:
      return "{{";
    case TokenKind::VariableEnd:
      return "the end of {{ }}";
    case TokenKind::BlockBegin:
      return "{%";
    case TokenKind::BlockEnd:
      return "the tag's end, %}";
    case TokenKind::End:
      return "the template's end";
    case TokenKind::String:
      return "the string " + in_quotes(token.value);
    default:
      return in_quotes(token.value);
  }
}

}  // namespace aloft::chat
