#include "infer/beam_search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "infer/likeliest.h"
#include "infer/sampling.h"

namespace aloft {
namespace {

// Far below every score, as transformers has it.
constexpr float kNever = -1e9f;

// A beam with one token more.
struct Continued {
  std::int64_t beam = 0;
  std::int32_t token = 0;
  float score = 0;  // log-probability of all tokens behind the prompt
};

struct Beam {
  std::vector<std::int32_t> tokens;  // behind the prompt
  float score = 0;
};

struct Kept {
  std::vector<std::int32_t> tokens;
  float score = kNever;
  bool is_text = false;  // false: a place that is free
  bool ended = false;
};

}  // namespace

void check_beams(const Generator& generator, std::span<const std::int32_t> prompt,
                 const BeamOptions& o) {
  const auto out_of_range = [](const std::string& saw, const std::string& need) {
    return UserError("E0700", "an option of beam search is out of range").saw(saw).need(need);
  };
  if (generator.rows() < 2)
    throw UserError("E0812", "beam search has one beam").need("a generator of two rows or more");
  if (o.ids < 1) throw out_of_range("ids = " + std::to_string(o.ids), "1 or more");
  if (o.tokens < 1) throw out_of_range("tokens = " + std::to_string(o.tokens), "1 or more");
  if (!(std::abs(o.length_penalty) <= BeamOptions::kMostPenalty))  // the powers are numbers of fp32
    throw out_of_range("length_penalty = " + shortest(o.length_penalty),
                       "at most " + shortest(BeamOptions::kMostPenalty) + " either way");
  // The last token is never fed; a prompt leaves one position free.
  const auto length = static_cast<std::int64_t>(prompt.size());
  if (length > 1 && length >= generator.longest())
    throw out_of_range("a prompt of " + std::to_string(length) + " tokens",
                       "less than " + std::to_string(generator.longest()) + ", the context");
  if (o.tokens > generator.longest() - length + 1)
    throw out_of_range("a prompt of " + std::to_string(length) + " tokens and " +
                           std::to_string(o.tokens) + " more",
                       std::to_string(generator.longest() + 1) +
                           " in all, which the context has room for: beams forget nothing");
}

namespace {

// The likeliest `wanted` of all that are one token longer, likeliest first.
std::vector<Continued> continuations(const Generator& generator, const std::vector<Beam>& beams,
                                     std::int64_t ids, std::size_t wanted) {
  std::vector<float> scores;
  std::size_t each = 0;
  for (std::size_t beam = 0; beam < beams.size(); ++beam) {
    const auto logits = generator.logits(ids, static_cast<std::int64_t>(beam));
    check_logits(logits);
    each = logits.size();
    const double most = *std::ranges::max_element(logits);
    double sum = 0;
    for (const float x : logits) sum += std::exp(x - most);
    const double whole = most + std::log(sum);
    for (const float x : logits)
      scores.push_back(static_cast<float>(x - whole) + beams[beam].score);
  }
  std::vector<Continued> found;
  for (const std::int32_t i : likeliest_first(scores, wanted))
    found.push_back({static_cast<std::int64_t>(i / each), static_cast<std::int32_t>(i % each),
                     scores[static_cast<std::size_t>(i)]});
  return found;
}

std::vector<std::int32_t> with(const std::vector<std::int32_t>& tokens, std::int32_t one) {
  std::vector<std::int32_t> all = tokens;
  all.push_back(one);
  return all;
}

// Of those that have ended and those that were kept before, the best by their scores.
void keep_best(std::vector<Kept>& kept, std::vector<Kept> ended) {
  const std::size_t places = kept.size();
  kept.insert(kept.end(), std::make_move_iterator(ended.begin()),
              std::make_move_iterator(ended.end()));
  // A free place is behind every text, whatever its score.
  std::ranges::stable_sort(kept, std::greater{},
                           [](const Kept& k) { return std::pair(k.is_text, k.score); });
  kept.resize(places);
}

}  // namespace

BeamText search_beams(Generator& generator, std::span<const std::int32_t> prompt,
                      const BeamOptions& o) {
  check_beams(generator, prompt, o);
  const auto beams = static_cast<std::size_t>(generator.rows());
  generator.start(prompt);
  std::vector<Beam> running(beams);  // at first they are one, and count once
  for (std::size_t beam = 1; beam < beams; ++beam) running[beam].score = kNever;
  std::vector<Kept> kept(beams);
  const std::size_t wanted = std::max<std::size_t>(2, 1 + o.ends.size()) * beams;
  for (std::int64_t length = 1;; ++length) {
    const std::vector<Continued> found = continuations(generator, running, o.ids, wanted);
    const auto divisor =
        static_cast<float>(std::pow(static_cast<double>(length), o.length_penalty));
    std::vector<Kept> ended;
    std::vector<Continued> open;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const Continued& c = found[i];
      const bool is_end = std::ranges::find(o.ends, c.token) != o.ends.end();
      if (!is_end && length < o.tokens) {
        if (open.size() < beams) open.push_back(c);
      } else if (i < beams) {
        const auto& before = running[static_cast<std::size_t>(c.beam)].tokens;
        ended.push_back({is_end ? before : with(before, c.token), c.score / divisor, true, is_end});
      }
    }
    keep_best(kept, std::move(ended));
    const bool is_full = std::ranges::all_of(kept, &Kept::is_text);
    if (open.empty()) break;
    if (is_full && open[0].score / divisor <= kept.back().score) break;
    std::vector<Beam> next;
    std::vector<std::int64_t> from;
    std::vector<std::int32_t> tokens;
    for (const Continued& c : open) {
      next.push_back({with(running[static_cast<std::size_t>(c.beam)].tokens, c.token), c.score});
      from.push_back(c.beam);
      tokens.push_back(c.token);
    }
    while (next.size() < beams) {  // a vocabulary of a few tokens, most of which end a text
      next.push_back({next[0].tokens, kNever});
      from.push_back(from[0]);
      tokens.push_back(tokens[0]);
    }
    running = std::move(next);
    generator.reorder(from);
    generator.feed(tokens);
    if (o.on_step) o.on_step(length);
    InterruptScope::leave_if_asked();
  }
  return {kept[0].tokens, kept[0].ended, kept[0].score};
}

}  // namespace aloft
