#include "data/chat/callable.h"

#include <algorithm>

#include "base/text.h"

namespace aloft::chat {

std::vector<const Value*> Given::by_names(const std::vector<std::string_view>& names,
                                          std::size_t needed) const {
  if (plain_.size() > names.size())
    fail(called_ + "() takes " + std::to_string(names.size()) + " arguments, got " +
         std::to_string(plain_.size()));
  std::vector<const Value*> values(names.size(), nullptr);
  for (std::size_t i = 0; i < plain_.size(); ++i) values[i] = &plain_[i];
  for (const auto& [name, value] : named_) {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) fail(called_ + "() has no argument " + in_quotes(name) + " here");
    const Value*& slot = values[static_cast<std::size_t>(at - names.begin())];
    if (slot) fail(called_ + "() is given " + in_quotes(name) + " twice");
    slot = &value;
  }
  for (std::size_t i = 0; i < needed; ++i)
    if (!values[i]) fail(called_ + "() lacks the argument " + in_quotes(names[i]));
  return values;
}

const Value& Given::only() const {
  if (plain_.size() != 1 || !named_.empty()) fail(called_ + "() takes one argument");
  return plain_[0];
}

void Given::none() const {
  if (!plain_.empty() || !named_.empty()) fail(called_ + "() takes no argument");
}

Given Given::behind(std::size_t count, std::string called) const {
  const auto first = plain_.begin() + static_cast<std::ptrdiff_t>(std::min(count, plain_.size()));
  return Given(std::move(called), std::vector<Value>(first, plain_.end()), named_);
}

Value make_function(std::string name, std::function<Value(const Given&, Work&)> call) {
  return Value(std::make_shared<const Callable>(Callable{std::move(name), std::move(call)}));
}

std::string text_or(const Value* value, std::string_view fallback, const Given& given) {
  if (!value) return std::string(fallback);
  if (!value->is_string())
    fail(given.called() + "() needs text, got " + std::string(type_name(*value)));
  return value->text();
}

std::int64_t whole_or(const Value* value, std::int64_t fallback, const Given& given) {
  if (!value) return fallback;
  if (!value->is_whole())
    fail(given.called() + "() needs a whole number, got " + std::string(type_name(*value)));
  return value->whole();
}

bool truth_or(const Value* value, bool fallback) { return value ? is_true(*value) : fallback; }

}  // namespace aloft::chat
