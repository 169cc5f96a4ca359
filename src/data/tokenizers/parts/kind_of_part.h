// Which of the kinds of a part has a name.
#pragma once

#include <string>
#include <string_view>

#include "base/text.h"
#include "data/tokenizers/parts/json_place.h"

namespace aloft::parts {

// The one of `kinds`, records with a `type`, whose is that of the part in `place`. Where none is,
// that is refused: `what` it is ("the decoder"), and the types that there are, `known` before them.
template <class Kinds>
const auto& kind_of_part(const JsonPlace& place, std::string_view type, const Kinds& kinds,
                         const std::string& what, std::string known = {}) {
  for (const auto& kind : kinds) {
    if (kind.type == type) return kind;
    known += (known.empty() ? "" : ", ") + std::string(kind.type);
  }
  place.refuse(what + " " + in_quotes(type), known);
}

}  // namespace aloft::parts
