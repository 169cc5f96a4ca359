#include "files/yaml_text.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <unordered_map>

#include "base/json.h"
#include "base/text.h"

namespace aloft {
namespace {

using Json = nlohmann::ordered_json;

// More values than a file of settings has: an alias may stand for a part that has aliases.
constexpr std::size_t kMostValues = 20'000;
// What a file of settings has at most, in bytes: yaml-cpp keeps some hundred bytes a value.
constexpr std::size_t kMostBytes = 4 << 20;

int line_of(const YAML::Mark& mark) { return mark.is_null() ? 0 : mark.line + 1; }

bool is_whole(std::string_view word) {
  if (word.starts_with('-')) word.remove_prefix(1);
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_only(std::string_view text, std::string_view of) {
  return text.find_first_not_of(of) == std::string_view::npos;
}

std::optional<std::int64_t> whole_in_base(std::string_view digits, int base) {
  std::int64_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// "1:30", minutes and seconds: each part behind the first is below 60, the last may have a
// fraction.
std::optional<Json> in_sixties(std::string_view word) {
  const std::size_t dot = word.find('.');
  constexpr std::int64_t kMost = std::int64_t{1} << 46;  // times 60 it fits
  std::int64_t whole = 0;
  bool is_first = true;
  for (const std::string_view part : split(word.substr(0, dot), ':')) {
    const auto value = whole_in_base(part, 10);
    if (!value || *value < 0 || *value > kMost || whole > kMost) return std::nullopt;
    if (!is_first && (*value > 59 || part.size() > 2)) return std::nullopt;
    whole = whole * 60 + *value;
    is_first = false;
  }
  if (dot == std::string_view::npos) return whole;
  const std::string_view fraction = word.substr(dot + 1);
  if (!is_only(fraction, "0123456789")) return std::nullopt;
  const auto below = fraction.empty() ? 0 : parse_double("0." + std::string(fraction));
  return static_cast<double>(whole) + below.value_or(0);
}

// Numbers that YAML 1.1 has, and PyYAML reads, beyond those of JSON: 0b11, 017 (octal), 1_000,
// 1:30. A word that looks like one and is none (08) is a text; nothing: the word is none of these.
std::optional<Json> of_yaml_1_1(const std::string& word) {
  const bool is_negative = word.starts_with('-');
  const std::string_view written =
      std::string_view(word).substr(is_negative || word.starts_with('+') ? 1 : 0);
  if (written.empty() || written[0] < '0' || written[0] > '9') return std::nullopt;
  std::string digits(written);
  std::erase(digits, '_');
  const auto with_sign = [&](auto value) { return Json(is_negative ? -value : value); };
  if (written.starts_with("0b") && digits.size() > 2 && is_only(digits.substr(2), "01")) {
    const auto value = whole_in_base(std::string_view(digits).substr(2), 2);
    return value ? with_sign(*value) : Json(word);
  }
  const bool has_hex = digits.size() > 2 && is_only(digits.substr(2), "0123456789abcdefABCDEF");
  if (written.starts_with("0x") && written.size() != digits.size() && has_hex)
    return (is_negative ? "-" : "") + digits;
  if (written.size() > 1 && written[0] == '0' && is_only(digits, "0123456789")) {
    const auto value = whole_in_base(digits, 8);
    return value ? with_sign(*value) : Json(word);
  }
  if (written.find(':') != std::string_view::npos) {
    const auto value = in_sixties(digits);
    if (!value) return Json(word);
    return value->is_number_integer() ? with_sign(value->get<std::int64_t>())
                                      : with_sign(value->get<double>());
  }
  if (written.size() == digits.size() || !is_only(digits, "0123456789.")) return std::nullopt;
  const std::string number = (is_negative ? "-" : "") + digits;
  if (const auto whole = parse_int(number)) return Json(*whole);
  if (is_only(digits, "0123456789")) return Json(number);  // beyond 64 bits
  if (const auto value = parse_double(number)) return Json(*value);
  return Json(word);
}

Json plain(const std::string& word) {
  if (word.empty() || word == "~" || word == "null" || word == "Null" || word == "NULL")
    return nullptr;
  if (word == "true" || word == "True" || word == "TRUE") return true;
  if (word == "false" || word == "False" || word == "FALSE") return false;
  if (const auto other = of_yaml_1_1(word)) return *other;
  if (const auto whole = parse_int(word)) return *whole;
  if (is_whole(word)) return word;  // beyond 64 bits: a double would round it
  // Infinity and NaN are written with a dot; without one they are words.
  const std::string low = lower(word);
  const std::string_view unsigned_word =
      std::string_view(low).substr(low.starts_with('-') || low.starts_with('+') ? 1 : 0);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (unsigned_word == ".inf") return low.starts_with('-') ? -kInfinity : kInfinity;
  if (low == ".nan") return std::numeric_limits<double>::quiet_NaN();
  if (const auto number = parse_double(word); number && std::isfinite(*number)) return *number;
  return word;
}

// What yaml-cpp tells of a document while it reads: where it begins, and whether it says anything.
class Heard : public YAML::EventHandler {
 public:
  int begins = -1, line = 0;
  bool has_content = false;

  void OnDocumentStart(const YAML::Mark& mark) override {
    begins = mark.pos, line = line_of(mark), has_content = false;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override { has_content = true; }
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {
    has_content = true;
  }
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    has_content = true;
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    has_content = true;
  }
  void OnMapEnd() override {}
};

// Refuses what the loader passes over: whatever stands behind the first document.
void refuse_more(const std::string& text) {
  std::istringstream in(text);
  YAML::Parser parser(in);
  Heard heard;
  if (!parser.HandleNextDocument(heard)) return;
  for (int before = heard.begins;; before = heard.begins) {
    if (!parser.HandleNextDocument(heard)) return;
    // A sign that begins nothing is not passed over by the parser, and comes again.
    if (heard.has_content || heard.begins == before)
      throw YamlError(heard.line, "a second document, where a file has one");
  }
}

class Reader {
 public:
  Json value(const YAML::Node& node, int depth) {
    if (depth > kDeepestJson) refuse(node, "nested too deeply");
    if (++values_ > kMostValues) refuse(node, "more than 20,000 values, aliases followed");
    switch (node.Type()) {
      case YAML::NodeType::Scalar:
        check_text(node);
        return is_quoted(node) ? Json(node.Scalar()) : plain(node.Scalar());
      case YAML::NodeType::Sequence: {
        Json list = Json::array();
        for (const YAML::Node& item : node) list.push_back(value(item, depth + 1));
        return list;
      }
      case YAML::NodeType::Map:
        return map(node, depth);
      default:
        return nullptr;
    }
  }

 private:
  [[noreturn]] static void refuse(const YAML::Node& node, const std::string& what) {
    throw YamlError(line_of(node.Mark()), what);
  }
  // yaml-cpp makes a single byte of the escapes \N and \_, which are U+0085 and U+00A0.
  static void check_text(const YAML::Node& node) {
    if (!is_utf8(node.Scalar())) refuse(node, "\\N or \\_ in a text: write \\u0085 or \\u00a0");
  }

  static bool is_quoted(const YAML::Node& node) { return node.Tag() == "!"; }

  Json map(const YAML::Node& node, int depth) {
    Json object = Json::object(), merged = Json::object();
    std::unordered_map<std::string, int> lines;
    for (const auto& member : node) {
      if (!member.first.IsScalar()) refuse(member.first, "a key that is no word");
      check_text(member.first);
      const std::string& key = member.first.Scalar();
      const auto [first, is_new] = lines.emplace(key, line_of(member.first.Mark()));
      if (!is_new)
        refuse(member.first, in_quotes(key) + " twice in one mapping, first in line " +
                                 std::to_string(first->second));
      Json v = value(member.second, depth + 1);
      if (key != "<<" || is_quoted(member.first)) {
        object[key] = std::move(v);
      } else {
        // The first of a list of mappings that has a key says what it is.
        const Json maps = v.is_array() ? std::move(v) : Json::array({std::move(v)});
        for (const Json& one : maps) {
          if (!one.is_object()) refuse(member.first, "\"<<\" of what is no mapping");
          for (const auto& [name, its] : one.items())
            if (!merged.contains(name)) merged[name] = its;
        }
      }
    }
    for (const auto& [name, its] : merged.items())
      if (!object.contains(name)) object[name] = its;
    return object;
  }

  std::size_t values_ = 0;
};

}  // namespace

Json parse_yaml(std::string_view text) {
  if (text.size() > kMostBytes) throw YamlError(0, "more than 4 MiB");
  if (!is_utf8(text)) throw YamlError(0, "bytes that are not UTF-8");
  try {
    const std::string whole(text);
    Json first = Reader().value(YAML::Load(whole), 0);
    refuse_more(whole);
    return first;
  } catch (const YAML::Exception& e) {
    throw YamlError(line_of(e.mark), e.msg);
  }
}

}  // namespace aloft
