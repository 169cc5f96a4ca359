#include "frontend/autocast.h"

#include <string>

#include "base/error.h"
#include "precision/recipe.h"

namespace aloft::amp {
namespace {

// Of the innermost block: whether it has taken casts back, and what it computes in where it was
// opened around calls of prepared models.
thread_local bool are_off = false;
thread_local Policy around;

// Not that of O0, which computes in f32 what is written in a low type.
Where where_of(const AutocastOptions& o) {
  if (!is_low(o.dtype) && o.dtype != DType::F32)
    throw UserError("E0833", "autocast has no such type")
        .saw(std::string(name_of(o.dtype)))
        .need("bf16 or f16; f32 is none");
  Where where = current_where();
  where.policy = {};
  if (!o.enabled || o.dtype == DType::F32) return where;
  PrecisionRecipe recipe;
  recipe.level = Level::O1;
  recipe.low = o.dtype;
  where.policy = Policy(recipe);
  return where;
}

}  // namespace

autocast::autocast(const AutocastOptions& options)
    : were_off_(are_off),
      was_around_(around),
      is_around_(!current_where().policy || a_block_around_governs()),
      scope_(where_of(options)) {
  are_off = !current_where().policy;
  around = is_around_ ? current_where().policy : Policy();
}
autocast::~autocast() { are_off = were_off_, around = was_around_; }

bool a_block_around_governs() { return around && current_where().policy == around; }

bool casts_are_off() { return are_off; }

bool is_autocast_enabled() {
  const Policy& policy = current_where().policy;
  return policy && policy.recipe().level != Level::O0;
}

}  // namespace aloft::amp
