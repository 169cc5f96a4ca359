#include "data/jsonl_tokens.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/text.h"
#include "data/chat/assistant_words.h"

namespace aloft {
namespace {

// Some templates write the day into what the system says. Data must be the same on each: it is
// 26 July 2024, what Llama's write where nobody tells them.
constexpr std::int64_t kDayOfTemplates = 1721952000;

constexpr std::int32_t kAnyId = -1;  // of no token

// What parts of a text from its beginning come to. A part is encoded from the last seam on alone,
// so that all parts of a long conversation together cost no more than it does.
struct Prefixes {
  const Tokenizer& tokenizer;
  std::string_view text;
  const std::vector<std::int32_t>& ids;  // of all of it
  const std::vector<Tokenizer::Seam>& seams;

  // How many of the text's tokens its first `bytes` come to; a token that holds more than these
  // counts where `with_shared`.
  std::size_t tokens_before(std::size_t bytes, bool with_shared) const {
    const auto behind = std::ranges::upper_bound(seams, bytes, {}, &Tokenizer::Seam::end);
    const Tokenizer::Seam seam =
        behind == seams.begin() ? Tokenizer::Seam{0, 0, 0} : *std::prev(behind);
    const std::vector<std::int32_t> own =
        tokenizer.encode(text.substr(seam.byte, bytes - seam.byte));
    const std::size_t most = std::min(own.size(), ids.size() - seam.ids);
    std::size_t same = 0;
    while (same < most && own[same] == ids[seam.ids + same]) ++same;
    const bool is_shared = same < own.size();
    return seam.ids + (is_shared && with_shared ? std::min(same + 1, ids.size() - seam.ids) : same);
  }
};

}  // namespace

void check_template_tokens(const Tokenizer& tokenizer, const LoadedChatTemplate& form) {
  for (const char* name : {"bos_token", "eos_token"}) {
    const auto token = form.variables.find(name);
    if (token == form.variables.end() || !token->is_string()) continue;
    const auto text = token->get<std::string>();
    const std::size_t count = tokenizer.encode(text).size();
    if (text.empty() || count == 1) continue;
    throw DataError("E0523", "the chat template's tokens are not the tokenizer's")
        .at(form.form.name())
        .saw(std::string(name) + " " + in_quotes(text) + ", which comes to " +
             std::to_string(count) + " tokens")
        .need("a tokenizer that knows it as one")
        .advice(
            "data.tokenizer.path = the folder of the template, with its tokenizer.json; "
            "transformers writes one where there is none (AutoTokenizer, then its save)");
  }
}

TextFrame text_frame(const Tokenizer& tokenizer) {
  const std::vector<std::int32_t> frame = tokenizer.framed({kAnyId});
  const auto text = std::ranges::find(frame, kAnyId);
  if (text == frame.end()) return {};
  return {{frame.begin(), text}, {text + 1, frame.end()}};
}

JsonlEncoder::JsonlEncoder(const Tokenizer& tokenizer, const LoadedChatTemplate* form)
    : tokenizer_(tokenizer), form_(form) {
  if (form) check_template_tokens(tokenizer, *form);
  TextFrame frame = text_frame(tokenizer);
  before_ = std::move(frame.before);
  behind_ = std::move(frame.behind);
}

void JsonlEncoder::add(std::int32_t id, bool is_learnt) {
  out_.push_back(static_cast<std::uint32_t>(id) | (is_learnt ? kLearntToken : 0));
}

std::vector<std::uint32_t> JsonlEncoder::tokens_of(const JsonlLine& line, JsonlKind kind,
                                                   const std::string& place) {
  out_.clear();
  try {
    if (kind == JsonlKind::Messages)
      add_messages(line);
    else
      add_plain(line, kind, place);
  } catch (DataError& e) {
    e.add_line("in", place);
    throw;
  }
  return out_;
}

void JsonlEncoder::add_plain(const JsonlLine& line, JsonlKind kind, const std::string& place) {
  const std::vector<std::int32_t> ids = tokenizer_.encode(line.text + line.completion);
  std::size_t given = 0;  // tokens of the prompt
  if (kind == JsonlKind::Prompt) {
    const std::vector<std::int32_t> prompt = tokenizer_.encode(line.text);
    given = std::min(prompt.size(), ids.size());
    if (!std::equal(prompt.begin(), prompt.end(), ids.begin(),
                    ids.begin() + static_cast<std::ptrdiff_t>(given)) &&
        joined_++ == 0)
      first_joined_ = place;
  }
  const bool is_text = kind == JsonlKind::Text;
  for (const std::int32_t id : before_) add(id, is_text);
  for (std::size_t i = 0; i < ids.size(); ++i) add(ids[i], i >= given);
  for (const std::int32_t id : behind_) add(id, true);
  const auto end = tokenizer_.end_of_text();
  if (!end) return;
  const bool is_there =
      !behind_.empty() ? behind_.back() == *end : ids.size() > given && ids.back() == *end;
  if (!is_there) add(*end, true);
}

void JsonlEncoder::add_messages(const JsonlLine& line) {
  if (!form_) throw InternalError("messages without a chat template");
  ChatInput input;
  input.messages = line.messages;
  input.tools = line.tools;
  input.variables = form_->variables;
  RenderLimits limits;
  limits.now = kDayOfTemplates;
  const RenderedChat chat = render_with_words(form_->form, input, limits);
  std::vector<Tokenizer::Seam> seams;
  const std::vector<std::int32_t> ids = tokenizer_.encode_with_seams(chat.text, seams);
  for (const std::int32_t id : ids) add(id, false);
  const auto ends = ends_of(chat.text, ids);
  const Prefixes prefixes{tokenizer_, chat.text, ids, seams};
  for (const chat::Span& words : chat.generated) {
    if (words.begin >= words.end) continue;
    std::size_t first = 0, last = 0;  // tokens [first, last)
    if (ends) {
      first =
          static_cast<std::size_t>(std::ranges::upper_bound(*ends, words.begin) - ends->begin());
      last =
          static_cast<std::size_t>(std::ranges::lower_bound(*ends, words.end) - ends->begin()) + 1;
    } else {
      first = prefixes.tokens_before(words.begin, false);
      last = prefixes.tokens_before(words.end, true);
    }
    for (std::size_t i = first; i < std::min(last, ids.size()); ++i) out_[i] |= kLearntToken;
  }
}

// Where in the text each token ends; nothing where the tokens' bytes are not the text's.
std::optional<std::vector<std::size_t>> JsonlEncoder::ends_of(
    std::string_view text, const std::vector<std::int32_t>& ids) const {
  std::vector<std::size_t> ends;
  std::size_t at = 0;
  for (const std::int32_t id : ids) {
    const std::string_view bytes = tokenizer_.bytes_of(id);
    if (text.substr(at, bytes.size()) != bytes) return std::nullopt;
    ends.push_back(at += bytes.size());
  }
  return at == text.size() ? std::optional(std::move(ends)) : std::nullopt;
}

}  // namespace aloft
