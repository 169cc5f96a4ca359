// What becomes of the places where a pattern matches: Hugging Face's behaviours of a delimiter.
//   of "the-final--countdown" by "-":
//   Removed             the final countdown
//   Isolated            the - final - - countdown
//   MergedWithPrevious  the- final- - countdown
//   MergedWithNext      the -final - -countdown
//   Contiguous          the - final -- countdown
#pragma once

#include <cstddef>
#include <vector>

#include "data/tokenizers/parts/json_place.h"

namespace aloft::parts {

enum class Delimiter { Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous };

Delimiter read_delimiter(const JsonPlace& place);

struct Stretch {
  std::size_t begin, end;
  bool is_match;
};

// Calls keep(begin, end) for the parts that stretches, which cover a text in order, come to.
template <class Keep>
void keep_parts(const std::vector<Stretch>& stretches, Delimiter how, Keep keep) {
  std::size_t i = 0;
  const std::size_t count = stretches.size();
  while (i < count) {
    const Stretch& s = stretches[i];
    std::size_t next = i + 1, end = s.end;
    const auto matches = [&](std::size_t at) { return stretches[at].is_match; };
    switch (how) {
      case Delimiter::Removed:
        break;
      case Delimiter::Isolated:
        break;
      case Delimiter::MergedWithPrevious:  // what lies between takes the first match behind it
        if (!s.is_match && next < count && matches(next)) end = stretches[next++].end;
        break;
      case Delimiter::MergedWithNext:  // a match takes what lies between, not another match
        if (s.is_match && next < count && !matches(next)) end = stretches[next++].end;
        break;
      case Delimiter::Contiguous:
        while (next < count && matches(next) == s.is_match) end = stretches[next++].end;
        break;
    }
    if (how != Delimiter::Removed || !s.is_match) keep(s.begin, end);
    i = next;
  }
}

}  // namespace aloft::parts
