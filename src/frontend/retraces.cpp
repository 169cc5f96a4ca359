#include "frontend/retraces.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "base/text.h"

namespace aloft {
namespace {

// What the calls had at one place, each value once, in order.
struct Seen {
  std::string place;
  bool is_tensor = false;
  std::vector<std::string> values = {};
};

std::vector<Seen> seen_in(const std::vector<std::vector<CallFact>>& calls) {
  std::vector<Seen> all;
  std::map<std::pair<std::string, bool>, std::size_t> at;
  for (const std::vector<CallFact>& call : calls)
    for (const CallFact& fact : call) {
      const auto [it, is_new] = at.emplace(std::pair(fact.place, fact.is_tensor), all.size());
      if (is_new) all.push_back({fact.place, fact.is_tensor});
      std::vector<std::string>& values = all[it->second].values;
      if (std::find(values.begin(), values.end(), fact.value) == values.end())
        values.push_back(fact.value);
    }
  return all;
}

// The lengths of "f32[8,3]".
std::vector<std::string> lengths_in(const std::string& type) {
  const std::size_t begin = type.find('[');
  std::vector<std::string> lengths(1);
  for (std::size_t i = begin + 1; begin != std::string::npos && i + 1 < type.size(); ++i)
    if (type[i] == ',')
      lengths.emplace_back();
    else
      lengths.back().push_back(type[i]);
  return lengths;
}

// Whether the types are one but for the first length.
bool differ_in_rows(const std::vector<std::string>& types) {
  const auto rest = [](const std::string& type) {
    std::vector<std::string> lengths = lengths_in(type);
    lengths[0] = type.substr(0, type.find('['));
    return lengths;
  };
  return std::all_of(types.begin(), types.end(),
                     [&](const std::string& t) { return rest(t) == rest(types[0]); });
}

std::string advice_for(const Seen& s) {
  if (!s.is_tensor) return "pass what changes from call to call as a tensor, full({}, x)";
  if (differ_in_rows(s.values))
    return "declare the largest number of rows, CompileOptions::most_rows, and take means instead "
           "of x.dim(0).max(); or pad to a few";
  return "pad it to a few lengths; a bound may be declared for the first dimension of all "
         "arguments, CompileOptions::most_rows";
}

std::string text_of(const Seen& s) {
  constexpr std::size_t kShown = 3;
  const std::size_t shown = std::min(kShown, s.values.size());
  const std::span<const std::string> last = std::span(s.values).last(shown);
  return s.place + " has had " + std::to_string(s.values.size()) + " " +
         (s.is_tensor ? "types and shapes" : "values") + ", at last " + join(last, ", ");
}

}  // namespace

std::string Retraces::add(std::vector<CallFact> call) {
  if (calls_.size() >= kTold) return {};
  calls_.push_back(std::move(call));
  if (calls_.size() < kTold) return {};
  const std::vector<Seen> all = seen_in(calls_);
  const auto most = std::max_element(all.begin(), all.end(), [](const Seen& a, const Seen& b) {
    return a.values.size() < b.values.size();
  });
  std::string text = "the function '" + function_ + "', compiled at " + place_.file_name() + ":" +
                     std::to_string(place_.line()) + ", has been traced for " +
                     std::to_string(kTold) + " kinds of calls: ";
  if (most == all.end() || most->values.size() < 2)
    return text +
           "not its arguments but what stands around it changes, such as train() and eval(), "
           "frozen parameters, hooks, the thread that calls";
  return text + text_of(*most) + "; each costs a compilation: " + advice_for(*most);
}

}  // namespace aloft
