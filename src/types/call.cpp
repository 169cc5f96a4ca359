#include "types/call.h"

#include <algorithm>

namespace aloft {

std::vector<Name> CallSpec::symbols() const {
  std::vector<Name> found;
  for (const auto* list : {&in, &out})
    for (const TensorType& t : *list)
      for (const Dim& d : t.shape)
        if (!d.is_constant() && std::find(found.begin(), found.end(), d.symbol()) == found.end())
          found.push_back(d.symbol());
  return found;
}

}  // namespace aloft
