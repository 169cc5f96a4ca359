#include "data/tokenizers/parts/json_place.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "data/tokenizers/utf8.h"

namespace aloft::parts {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kShown = 60;

std::string shown(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  return in_quotes(json_text(value), kShown);
}

}  // namespace

DataError unusable(std::string_view file, std::string_view way, std::string_view saw,
                   std::string_view need) {
  DataError e("E0519", "not a tokenizer that can be used");
  e.add_line("at", file);
  if (!way.empty()) e.add_line("in", way);
  e.add_line("saw", saw);
  e.add_line("need", need);
  return e;
}

JsonPlace::JsonPlace(const Json& value, const std::string& file, std::string way)
    : value_(&value), file_(&file), way_(std::move(way)) {}

bool JsonPlace::is_text() const { return value_->is_string(); }
bool JsonPlace::is_list() const { return value_->is_array(); }
bool JsonPlace::is_object() const { return value_->is_object(); }

std::optional<JsonPlace> JsonPlace::find(const char* key) const {
  if (!value_->is_object()) refuse(shown(*value_), "an object");
  const auto it = value_->find(key);
  if (it == value_->end() || it->is_null()) return std::nullopt;
  return JsonPlace(*it, *file_, way_.empty() ? key : way_ + "." + key);
}

JsonPlace JsonPlace::at(const char* key) const {
  auto found = find(key);
  if (!found) refuse("no " + std::string(key), "the key " + std::string(key));
  return *found;
}

std::vector<JsonPlace> JsonPlace::items() const {
  if (!is_list()) refuse(shown(*value_), "a list");
  std::vector<JsonPlace> all;
  all.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i)
    all.emplace_back((*value_)[i], *file_, way_ + "[" + std::to_string(i) + "]");
  return all;
}

std::vector<std::pair<std::string, JsonPlace>> JsonPlace::members() const {
  if (!is_object()) refuse(shown(*value_), "an object");
  std::vector<std::pair<std::string, JsonPlace>> all;
  all.reserve(value_->size());
  for (const auto& [key, value] : value_->items())
    all.emplace_back(key, JsonPlace(value, *file_, way_ + "." + key));
  return all;
}

std::string JsonPlace::text() const {
  if (!is_text()) refuse(shown(*value_), "a text");
  return value_->get<std::string>();
}

bool JsonPlace::flag() const {
  if (!value_->is_boolean()) refuse(shown(*value_), "true or false");
  return value_->get<bool>();
}

double JsonPlace::number() const {
  if (!value_->is_number()) refuse(shown(*value_), "a number");
  return value_->get<double>();
}

char32_t JsonPlace::character() const {
  const std::string whole_text = text();
  if (!whole_text.empty()) {
    const utf8::Step step = utf8::step(whole_text, 0);
    if (step.valid && step.length == whole_text.size()) return step.code;
  }
  refuse(shown(*value_), "one character");
}

std::int64_t JsonPlace::whole(std::int64_t least, std::int64_t most) const {
  // Of an unsigned number beyond int64 the signed reading would be another number.
  const bool is_small = value_->is_number_integer() &&
                        (!value_->is_number_unsigned() ||
                         value_->get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX));
  if (is_small) {
    const auto value = value_->get<std::int64_t>();
    if (value >= least && value <= most) return value;
  }
  refuse(shown(*value_),
         "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
}

bool JsonPlace::flag_or(const char* key, bool fallback) const {
  const auto found = find(key);
  return found ? found->flag() : fallback;
}

std::string JsonPlace::text_or(const char* key, std::string fallback) const {
  const auto found = find(key);
  return found ? found->text() : std::move(fallback);
}

std::string JsonPlace::type() const { return at("type").text(); }

void JsonPlace::know_only(std::initializer_list<std::string_view> keys) const {
  check_keys(keys, true);
}

void JsonPlace::know_keys(std::initializer_list<std::string_view> keys) const {
  check_keys(keys, false);
}

void JsonPlace::check_keys(std::initializer_list<std::string_view> keys, bool has_type) const {
  if (!is_object()) refuse(shown(*value_), "an object");
  for (const auto& [key, value] : value_->items()) {
    const bool is_known = std::find(keys.begin(), keys.end(), key) != keys.end();
    if (is_known || (has_type && key == "type")) continue;
    std::string known = has_type ? "type" : "";
    for (std::string_view k : keys) known += (known.empty() ? "" : ", ") + std::string(k);
    refuse("the key " + in_quotes(key, kShown) + ", which is not known", "no other than " + known);
  }
}

void JsonPlace::refuse(const std::string& saw, const std::string& need) const {
  throw unusable(*file_, way_, saw, need);
}

}  // namespace aloft::parts
