#include "data/text_stream.h"

#include <algorithm>

#include "data/tokenizers/utf8.h"

namespace aloft {
namespace {

// U+FFFD, which decoders give for a character that is not whole yet.
constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

}  // namespace

std::string TextStream::push(std::int32_t id) {
  ids_.push_back(id);
  const std::string text = tokenizer_->decode(ids_);
  if (text.size() <= told_.size() || text.ends_with(kReplacementCharacter) ||
      utf8::safe_cut(text) != text.size())
    return "";
  std::string next = text.substr(told_.size());
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(told_ids_));
  told_ids_ = ids_.size();
  told_ = tokenizer_->decode(ids_);
  return next;
}

std::string TextStream::finish() {
  const std::string text = tokenizer_->decode(ids_);
  ids_.clear();
  told_ids_ = 0;
  const std::string left = text.substr(std::min(told_.size(), text.size()));
  told_.clear();
  return left;
}

}  // namespace aloft
