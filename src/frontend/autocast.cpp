#include "frontend/autocast.h"

#include <string>

#include "base/error.h"
#include "precision/recipe.h"

namespace aloft::amp {
namespace {

thread_local bool are_off = false;

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

autocast::autocast(const AutocastOptions& options) : scope_(where_of(options)), were_off_(are_off) {
  are_off = !current_where().policy;
}
autocast::~autocast() { are_off = were_off_; }

bool casts_are_off() { return are_off; }

bool is_autocast_enabled() {
  const Policy& policy = current_where().policy;
  return policy && policy.recipe().level != Level::O0;
}

}  // namespace aloft::amp
