#include "observe/compare/foreign_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace aloft::compare {

namespace {

using Kind = ForeignJson::Kind;

[[noreturn]] void refuse(const std::string& name, std::string_view text, std::size_t at,
                         std::string_view saw) {
  at = std::min(at, text.size());
  const auto line = 1 + std::ranges::count(text.substr(0, at), '\n');
  throw DataError("E0650", "a file of a dump cannot be read")
      .at(name + ":" + std::to_string(line))
      .saw(saw)
      .advice("make the dump again; a program that was ended may have left a part of it");
}

// Python's words for numbers that JSON has none for, as text.
std::string with_words_quoted(std::string_view text) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"NaN", "\"nan\""}, {"-Infinity", "\"-inf\""}, {"Infinity", "\"inf\""}};
  std::string out;
  out.reserve(text.size());
  bool in_string = false;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (in_string && c == '\\') {
      out.append(text.substr(at, 2));
      at += 2;
      continue;
    }
    if (c == '"') in_string = !in_string;
    const auto* const word = std::ranges::find_if(
        kWords, [&](const auto& w) { return !in_string && text.substr(at).starts_with(w.first); });
    if (word != std::end(kWords)) {
      out += word->second;
      at += word->first.size();
    } else {
      out += c;
      ++at;
    }
  }
  return out;
}

// Builds the value from the parser's events; a value's place in its parent is made before its own
// members come.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  ForeignJson take() { return std::move(root_); }

  bool null() override { return put(Kind::Null); }
  bool boolean(bool v) override { return put(Kind::Bool, v ? 1 : 0); }
  bool number_integer(number_integer_t v) override {
    return put(Kind::Number, static_cast<double>(v), std::to_string(v), true);
  }
  bool number_unsigned(number_unsigned_t v) override {
    return put(Kind::Number, static_cast<double>(v), std::to_string(v), true);
  }
  bool number_float(number_float_t v, const string_t& literal) override {
    // So comes a whole number beyond 64 bits, too.
    const bool is_whole = literal.find_first_not_of("-0123456789") == string_t::npos;
    return put(Kind::Number, v, is_whole ? literal : shortest(v), is_whole);
  }
  bool string(string_t& v) override { return put(Kind::Text, 0, std::move(v)); }
  bool binary(binary_t&) override { return false; }  // JSON has none
  bool start_object(std::size_t) override { return open(Kind::Object); }
  bool start_array(std::size_t) override { return open(Kind::List); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& v) override {
    open_.back()->keys.push_back(std::move(v));
    return true;
  }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::json::exception&) override {
    refuse(name_, text_, at, "text that is not JSON");
  }

 private:
  ForeignJson* add() {
    if (open_.empty()) return &root_;
    return &open_.back()->items.emplace_back();
  }
  bool put(Kind kind, double number = 0, std::string text = {}, bool is_whole = false) {
    ForeignJson* const v = add();
    v->kind = kind, v->number = number, v->text = std::move(text), v->is_whole = is_whole;
    return true;
  }
  bool open(Kind kind) {
    if (open_.size() >= static_cast<std::size_t>(kDeepestJson))
      refuse(name_, text_, 0, "JSON that is nested too deeply");
    ForeignJson* const v = add();
    v->kind = kind;
    open_.push_back(v);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  const std::string& name_;
  ForeignJson root_;
  std::vector<ForeignJson*> open_;  // of each the last item is the next one's
};

}  // namespace

const ForeignJson* ForeignJson::find(std::string_view key) const {
  for (std::size_t i = keys.size(); i-- > 0;)
    if (keys[i] == key) return &items[i];
  return nullptr;
}

std::string_view ForeignJson::text_of(std::string_view key) const {
  const ForeignJson* const v = find(key);
  return v && v->kind == Kind::Text ? std::string_view(v->text) : std::string_view();
}

ForeignJson parse_foreign_json(std::string_view text, const std::string& name) {
  // The parser takes a zero byte for the end.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    refuse(name, text, zero, "a zero byte, which is not JSON");
  const std::string plain = with_words_quoted(text);
  Builder builder(plain, name);
  if (!nlohmann::json::sax_parse(plain, &builder))
    refuse(name, plain, plain.size(), "text that is not JSON");
  return builder.take();
}

}  // namespace aloft::compare
