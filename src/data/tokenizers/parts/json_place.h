// A value in somebody's JSON together with where it stands, so that whatever is wrong with it, or
// is not known here, is refused with the file and the way to it:
// "pre_tokenizer.pretokenizers[1].type".
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/tokenizers/parts/unusable.h"

namespace aloft::parts {

// Refers to the JSON and to the file's name: both outlive it.
class JsonPlace {
 public:
  JsonPlace(const nlohmann::json& value, const std::string& file, std::string way = {});

  const nlohmann::json& json() const { return *value_; }
  const std::string& file() const { return *file_; }
  const std::string& way() const { return way_; }

  bool is_text() const;
  bool is_list() const;
  bool is_object() const;

  // The member; nothing where it is not there or null.
  std::optional<JsonPlace> find(const char* key) const;
  JsonPlace at(const char* key) const;   // one that must be there, and not null
  std::vector<JsonPlace> items() const;  // of a list
  std::vector<std::pair<std::string, JsonPlace>> members() const;  // of an object
  std::string text() const;
  bool flag() const;
  double number() const;
  char32_t character() const;  // a text of one character
  std::int64_t whole(std::int64_t least, std::int64_t most) const;

  bool flag_or(const char* key, bool fallback) const;
  std::string text_or(const char* key, std::string fallback) const;

  // The member `type`, by which parts are told apart.
  std::string type() const;
  // Every other key than `type` and these is refused by name: it could change the ids.
  void know_only(std::initializer_list<std::string_view> keys) const;
  // The same of an object without a `type`.
  void know_keys(std::initializer_list<std::string_view> keys) const;

  [[noreturn]] void refuse(const std::string& saw, const std::string& need) const;

 private:
  void check_keys(std::initializer_list<std::string_view> keys, bool has_type) const;

  const nlohmann::json* value_;
  const std::string* file_;
  std::string way_;
};

}  // namespace aloft::parts
