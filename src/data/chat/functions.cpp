#include "data/chat/functions.h"

#include <algorithm>
#include <ctime>

#include "base/text.h"
#include "data/chat/callable.h"
#include "data/chat/value_text.h"

namespace aloft::chat {
namespace {

// dict(): of another one, and of names.
std::vector<std::pair<Value, Value>> pairs_of(const Given& given, Work& work) {
  std::vector<std::pair<Value, Value>> items;
  if (given.plain().size() > 1) fail(given.called() + "() takes one dictionary");
  if (!given.plain().empty()) {
    if (!given.plain()[0].is_dict()) fail(given.called() + "() of what is no dictionary");
    items = given.plain()[0].dict().items;
    work.spend(static_cast<std::int64_t>(items.size()));
  }
  for (const auto& [name, value] : given.named()) {
    const auto same = std::find_if(items.begin(), items.end(), [&](const auto& item) {
      return item.first.is_string() && item.first.text() == name;
    });
    if (same == items.end())
      items.emplace_back(Value(name), value);
    else
      same->second = value;
  }
  return items;
}

Value new_namespace(const Given& given, Work& work, Surroundings& around) {
  Namespace& space = around.spaces.emplace_back();
  for (auto& [key, value] : pairs_of(given, work)) {
    if (!key.is_string() || key.text().starts_with('_'))
      fail("a namespace's name is no text, or begins with _");
    space.items.emplace_back(key.text(), value);
  }
  return Value(&space);
}

Value range(const Given& given, Work& work) {
  const std::vector<Value>& plain = given.plain();
  if (plain.empty() || plain.size() > 3 || !given.named().empty())
    fail("range takes one to three whole numbers");
  std::int64_t bounds[3] = {0, 0, 1};
  for (std::size_t i = 0; i < plain.size(); ++i)
    bounds[plain.size() == 1 ? 1 : i] = whole_or(&plain[i], 0, given);
  const auto [first, last, step] = bounds;
  constexpr std::size_t kMost = 100000;  // that of Jinja's sandbox
  if (step == 0) fail("range with a step of 0");
  std::vector<Value> items;
  for (std::int64_t i = first; step > 0 ? i < last : i > last;) {
    if (items.size() == kMost) fail("range of more than 100,000 numbers");
    items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  work.spend(static_cast<std::int64_t>(items.size()));
  return make_list(std::move(items), ListKind::Range);
}

Value time_text(const Given& given, std::int64_t now) {
  const std::string format = text_or(given.by_names({"format"}, 1)[0], "", given);
  const std::time_t seconds = now;
  std::tm local{};
  localtime_r(&seconds, &local);
  char text[512];
  // A byte more, so that nothing at all is told from what does not fit.
  const std::size_t size = std::strftime(text, sizeof text, (format + " ").c_str(), &local);
  if (size == 0) fail("strftime_now with a format of more than 500 characters");
  return Value(std::string(text, size - 1));
}

}  // namespace

Value function_of(std::string_view name, Surroundings& around) {
  for (const std::string_view other : {"cycler", "joiner", "lipsum", "caller", "self", "super"})
    if (name == other) fail("the function " + std::string(name) + " is not done here");
  const std::string called(name);
  if (name == "dict")
    return make_function(
        called, [](const Given& given, Work& work) { return make_dict(pairs_of(given, work)); });
  if (name == "namespace")
    return make_function(called, [&around](const Given& given, Work& work) {
      return new_namespace(given, work, around);
    });
  if (name == "range") return make_function(called, range);
  if (name == "raise_exception")
    return make_function(called, [](const Given& given, Work& work) -> Value {
      throw Raised{to_text(*given.by_names({"message"}, 1)[0], work)};
    });
  if (name == "strftime_now")
    return make_function(
        called, [now = around.now](const Given& given, Work&) { return time_text(given, now); });
  return Undefined{called};
}

}  // namespace aloft::chat
