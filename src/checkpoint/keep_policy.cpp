#include "checkpoint/keep_policy.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace aloft {

std::vector<std::int64_t> checkpoints_to_remove(std::vector<KeptCheckpoint> all, KeepPolicy policy,
                                                std::int64_t saved) {
  if (policy.newest <= 0) return {};
  std::vector<KeptCheckpoint> healthy;
  std::copy_if(all.begin(), all.end(), std::back_inserter(healthy),
               [](const KeptCheckpoint& c) { return c.healthy; });
  std::map<std::string, std::vector<KeptCheckpoint>> measured;  // by what they were validated on
  for (const KeptCheckpoint& c : healthy)
    if (c.validation_loss) measured[c.validated_on].push_back(c);
  std::sort(healthy.begin(), healthy.end(),
            [](const auto& a, const auto& b) { return a.step > b.step; });
  std::set<std::int64_t> stays = {saved};
  const auto keep_first = [&](const std::vector<KeptCheckpoint>& list, std::int64_t count) {
    for (std::size_t i = 0; i < list.size() && static_cast<std::int64_t>(i) < count; ++i)
      stays.insert(list[i].step);
  };
  keep_first(healthy, policy.newest);
  std::vector<KeptCheckpoint> places;  // to go back to
  std::copy_if(healthy.begin(), healthy.end(), std::back_inserter(places),
               [&](const KeptCheckpoint& c) {
                 return policy.back_every == 0 || c.step % policy.back_every == 0;
               });
  keep_first(places, policy.back);
  for (auto& [data, list] : measured) {
    std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
      return a.validation_loss != b.validation_loss ? *a.validation_loss < *b.validation_loss
                                                    : a.step < b.step;
    });
    keep_first(list, policy.best);
  }
  for (const KeptCheckpoint& c : healthy)
    if (c.for_good || c.step <= policy.gone_back_to ||
        (policy.every > 0 && c.step % policy.every == 0))
      stays.insert(c.step);
  std::vector<std::int64_t> gone;
  for (const KeptCheckpoint& c : all)
    if (!stays.contains(c.step)) gone.push_back(c.step);
  std::sort(gone.begin(), gone.end());
  return gone;
}

}  // namespace aloft
