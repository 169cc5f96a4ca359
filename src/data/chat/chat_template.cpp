#include "data/chat/chat_template.h"

#include <algorithm>
#include <ctime>

#include "base/error.h"
#include "base/json.h"
#include "data/chat/conversation.h"
#include "data/chat/parser.h"

namespace aloft {
namespace {

bool has_generation_in(const chat::Body& body) {
  return std::any_of(body.begin(), body.end(), [](const chat::Statement& s) {
    return s.kind == chat::Statement::Kind::Generation || has_generation_in(s.body) ||
           has_generation_in(s.otherwise) ||
           std::any_of(s.branches.begin(), s.branches.end(),
                       [](const chat::Branch& b) { return has_generation_in(b.body); });
  });
}

}  // namespace

ChatTemplate::ChatTemplate(std::string_view text, std::string name) : name_(std::move(name)) {
  constexpr std::size_t kMostBytes = 1 << 20;
  constexpr const char* kHeadline = "a chat template cannot be read";
  if (!is_utf8(text) || text.size() > kMostBytes)
    throw DataError("E0540", kHeadline)
        .at(name_)
        .saw(text.size() > kMostBytes ? std::to_string(text.size()) + " bytes"
                                      : "text that is not UTF-8")
        .need("a template in UTF-8 of a megabyte at most");
  source_ = chat::source_of(text);
  try {
    body_ = std::make_shared<const chat::Body>(chat::parse_template(source_));
  } catch (const chat::Mistake& m) {
    refuse("E0540", kHeadline, m.at, m.saw, m.need);
  }
  has_generation_ = has_generation_in(*body_);
}

RenderedChat ChatTemplate::render(const ChatInput& input, const RenderLimits& limits) const {
  std::vector<std::pair<std::string, chat::Value>> variables;
  try {
    variables = chat::variables_of(input);
  } catch (const chat::Failure& f) {
    throw DataError("E0541", "a chat template cannot be given this conversation")
        .at(name_)
        .saw(f.text)
        .need(
            "a list of messages, each an object, such as {\"role\": \"user\", \"content\": \"\"}");
  }
  const std::int64_t now = limits.now != 0 ? limits.now : std::time(nullptr);
  chat::Evaluator evaluator(variables, now, limits.work);
  try {
    evaluator.run(*body_);
  } catch (const chat::Failure& f) {
    refuse("E0541", "a chat template cannot be carried out", evaluator.place(), f.text, "");
  } catch (const chat::Raised& r) {
    refuse("E0542", "the chat template refuses this conversation", evaluator.place(), r.message,
           "");
  }
  return {evaluator.text(), evaluator.generated()};
}

void ChatTemplate::refuse(const std::string& code, const std::string& headline, std::size_t at,
                          const std::string& saw, const std::string& need) const {
  DataError e(code, headline);
  e.add_line("at", name_ + ":" + chat::place_in(source_, at));
  e.add_line("saw", saw);
  if (!need.empty()) e.add_line("need", need);
  throw e;
}

}  // namespace aloft
