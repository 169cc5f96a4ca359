// An interned string: compares and hashes by pointer, lives for ever. For op names, state names,
// module paths and other words that a graph repeats thousands of times.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace aloft {

class Name {
 public:
  Name() : text_(empty()) {}
  Name(std::string_view text) : text_(intern(text)) {}
  Name(const char* text) : Name(std::string_view(text)) {}
  Name(const std::string& text) : Name(std::string_view(text)) {}

  const std::string& str() const { return *text_; }
  bool is_empty() const { return text_->empty(); }
  explicit operator bool() const { return !is_empty(); }

  friend bool operator==(Name a, Name b) { return a.text_ == b.text_; }
  // Alphabetical, so that maps keyed by Name have an order that does not depend on addresses.
  friend bool operator<(Name a, Name b) { return *a.text_ < *b.text_; }

 private:
  static const std::string* intern(std::string_view text);  // thread-safe
  static const std::string* empty();
  const std::string* text_;
  friend struct std::hash<Name>;
};

}  // namespace aloft

template <>
struct std::hash<aloft::Name> {
  std::size_t operator()(aloft::Name n) const { return std::hash<const void*>{}(n.text_); }
};
