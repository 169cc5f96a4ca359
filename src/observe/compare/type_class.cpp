#include "observe/compare/type_class.h"

#include <string>
#include <string_view>

#include "base/text.h"

namespace aloft::compare {

namespace {

enum class Class { Unknown, Whole, Float, Complex };

Class class_of(const Record& r) {
  const std::string type = lower(r.type);
  const auto has = [&](std::string_view word) { return type.find(word) != std::string::npos; };
  if (has("complex")) return Class::Complex;
  if (has("float")) return Class::Float;
  return has("int") || has("bool") ? Class::Whole : Class::Unknown;
}

}  // namespace

bool is_of_another_class(const Record& a, const Record& b) {
  if (a.part != Part::Output || b.part != Part::Output) return false;
  const Class ours = class_of(a), theirs = class_of(b);
  return ours != theirs && ours != Class::Unknown && theirs != Class::Unknown;
}

}  // namespace aloft::compare
