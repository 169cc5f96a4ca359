#include "sources/source_kind.h"

#include <algorithm>

namespace aloft {

#define SOURCE(name) SourceKind name##_source();
#include "sources/catalog.inc"
#undef SOURCE

const std::vector<SourceKind>& source_kinds() {
  static const std::vector<SourceKind> all = {
#define SOURCE(name) name##_source(),
#include "sources/catalog.inc"
#undef SOURCE
  };
  return all;
}

const SourceKind& source_of(const Recipe& recipe) {
  for (const SourceKind& kind : source_kinds())
    if (kind.is_named(recipe)) return kind;
  return *std::ranges::find(source_kinds(), true, &SourceKind::is_usual);
}

}  // namespace aloft
