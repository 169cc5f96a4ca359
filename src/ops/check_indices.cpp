#include "ops/check_indices.h"

#include <string>
#include <vector>

#include "base/error.h"
#include "ops/infer.h"

namespace aloft {

void check_indices(Name op, std::string_view what, const Operand& indices, std::int64_t count,
                   std::optional<std::int64_t> ignored) {
  const Tensor& t = indices.tensor;
  if (!t.is_defined() || !t.held() || is_float(t.dtype())) return;
  const std::vector<std::int64_t> values = t.to_ints();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if ((values[i] >= 0 && values[i] < count) || values[i] == ignored) continue;
    UserError e("E0214", op.str() + ": " + std::string(what) + " is out of range");
    if (const std::string place = place_of(where_of(indices.loc)); !place.empty())
      e.add_line("at", place);
    std::string need = "0 to " + std::to_string(count - 1);
    if (ignored) need += ", or " + std::to_string(*ignored) + " (ignore_index) for none";
    e.add_line("saw", std::to_string(values[i]) + " as number " + std::to_string(i) + " of " +
                          std::to_string(values.size()));
    e.add_line("need", need);
    throw e;
  }
}

}  // namespace aloft
