#include "files/yaml_text.h"

#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>

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

Json plain(const std::string& word) {
  if (word.empty() || word == "~" || word == "null" || word == "Null" || word == "NULL")
    return nullptr;
  if (word == "true" || word == "True" || word == "TRUE") return true;
  if (word == "false" || word == "False" || word == "FALSE") return false;
  if (const auto whole = parse_int(word)) return *whole;
  if (const auto number = parse_double(word)) return *number;
  return word;
}

class Reader {
 public:
  Json value(const YAML::Node& node, int depth) {
    if (depth > kDeepestJson) refuse(node, "nested too deeply");
    if (++values_ > kMostValues) refuse(node, "more than 20,000 values, aliases followed");
    switch (node.Type()) {
      case YAML::NodeType::Scalar:
        return node.Tag() == "!" ? Json(node.Scalar()) : plain(node.Scalar());
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

  Json map(const YAML::Node& node, int depth) {
    Json object = Json::object(), merged = Json::object();
    for (const auto& member : node) {
      if (!member.first.IsScalar()) refuse(member.first, "a key that is no word");
      const std::string& key = member.first.Scalar();
      Json v = value(member.second, depth + 1);
      if (key != "<<") {
        object[key] = std::move(v);
      } else {
        // The first of a list of mappings that has a key says what it is.
        const Json maps = v.is_array() ? std::move(v) : Json::array({std::move(v)});
        for (const Json& one : maps)
          if (one.is_object())
            for (const auto& [name, its] : one.items())
              if (!merged.contains(name)) merged[name] = its;
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
    return Reader().value(YAML::Load(std::string(text)), 0);
  } catch (const YAML::Exception& e) {
    throw YamlError(line_of(e.mark), e.msg);
  }
}

}  // namespace aloft
