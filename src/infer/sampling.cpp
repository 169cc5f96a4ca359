#include "infer/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "infer/likeliest.h"
#include "scalar/philox.h"

namespace aloft {
namespace {

void need(bool is_right, const char* option, double saw, const std::string& need) {
  if (is_right) return;
  throw UserError("E0700", "an option of drawing text is out of range")
      .saw(option + (" = " + shortest(saw)))
      .need(need);
}

// The logits without what the text has used up; `kept` holds them where they are others.
std::span<const float> penalized(std::span<const float> logits, const SamplingOptions& o,
                                 const TextSoFar& text, std::vector<float>& kept) {
  const bool counts = o.presence_penalty != 0 || o.frequency_penalty != 0;
  if (o.repetition_penalty == 1 && !counts) return logits;
  kept.assign(logits.begin(), logits.end());
  std::map<std::int32_t, std::int64_t> times;  // that a token was drawn, 0: it is the prompt's
  for (std::size_t i = 0; i < text.tokens.size(); ++i) times[text.tokens[i]] += i >= text.prompt;
  for (const auto& [token, drawn] : times) {
    if (token < 0 || static_cast<std::size_t>(token) >= kept.size()) continue;
    double x = kept[token];
    if (o.repetition_penalty != 1) x = x > 0 ? x / o.repetition_penalty : x * o.repetition_penalty;
    if (drawn > 0) x -= o.presence_penalty + o.frequency_penalty * static_cast<double>(drawn);
    kept[token] = static_cast<float>(x);
  }
  return kept;
}

// Tokens that may be drawn, likeliest first, with weights whose sum is `total`.
struct Candidates {
  std::vector<std::int32_t> tokens;
  std::vector<double> weights;
  double total = 0;

  void keep(std::size_t count) {
    tokens.resize(count);
    weights.resize(count);
    total = std::accumulate(weights.begin(), weights.end(), 0.0);
  }
};

Candidates candidates(std::span<const float> logits, const SamplingOptions& o) {
  Candidates c;
  c.tokens =
      likeliest_first(logits, o.top_k > 0 ? static_cast<std::size_t>(o.top_k) : logits.size());
  c.weights.resize(c.tokens.size());
  for (std::size_t i = 0; i < c.tokens.size(); ++i)
    c.total += c.weights[i] = std::exp((logits[c.tokens[i]] - logits[c.tokens[0]]) / o.temperature);
  return c;
}

void keep_top_p(Candidates& c, double p) {
  double kept = 0;
  std::size_t count = 0;
  while (count < c.tokens.size() && (count == 0 || kept < p * c.total)) kept += c.weights[count++];
  c.keep(count);
}

void keep_min_p(Candidates& c, double p) {
  std::size_t count = 1;  // weights fall from 1 on
  while (count < c.tokens.size() && c.weights[count] >= p * c.weights[0]) ++count;
  c.keep(count);
}

void keep_typical(Candidates& c, double p) {
  std::vector<double> distance(c.tokens.size());  // of a surprise from what it is on average
  double entropy = 0;
  for (std::size_t i = 0; i < distance.size(); ++i) {
    const double share = c.weights[i] / c.total;
    distance[i] = share > 0 ? -std::log(share) : std::numeric_limits<double>::infinity();
    if (share > 0) entropy += share * distance[i];
  }
  for (double& surprise : distance) surprise = std::abs(surprise - entropy);
  std::vector<std::size_t> order(c.tokens.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto nearer = [&](std::size_t a, std::size_t b) {
    return distance[a] != distance[b] ? distance[a] < distance[b] : a < b;
  };
  // The nearest first, and only as many are put in order as are looked at.
  double kept = 0;
  std::size_t count = 0, sorted = 0, more = 256;
  for (; count < order.size() && (count == 0 || kept < p * c.total); ++count) {
    if (count == sorted) {
      const auto from = order.begin() + static_cast<std::ptrdiff_t>(sorted);
      sorted = std::min(order.size(), sorted + more);
      more *= 4;
      const auto to = order.begin() + static_cast<std::ptrdiff_t>(sorted);
      if (to != order.end()) std::nth_element(from, to, order.end(), nearer);
      std::sort(from, to, nearer);
    }
    kept += c.weights[order[count]];
  }
  order.resize(count);
  std::sort(order.begin(), order.end());  // likeliest first again
  for (std::size_t i = 0; i < count; ++i) {
    c.tokens[i] = c.tokens[order[i]];
    c.weights[i] = c.weights[order[i]];
  }
  c.keep(count);
}

}  // namespace

void check_logits(std::span<const float> logits) {
  if (logits.empty())
    throw UserError("E0812", "there is no token to choose from").need("one logit or more");
  const auto bad = std::find_if(logits.begin(), logits.end(), [](float x) {
    return !(x < std::numeric_limits<float>::infinity());
  });
  if (bad != logits.end())
    throw DivergedError("E0813", "the model's logits are not finite")
        .saw(shortest(*bad) + " for token " + std::to_string(bad - logits.begin()))
        .need("numbers below infinity")
        .advice("generate from an earlier checkpoint, or with --precision O0");
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  if (std::ranges::count(logits, kLeast) == std::ssize(logits))
    throw DivergedError("E0813", "the model's logits are not finite")
        .saw("-inf for every token")
        .need("a number for one of them")
        .advice("generate from an earlier checkpoint, or with --precision O0");
}

void check(const SamplingOptions& o) {
  constexpr double kMost = SamplingOptions::kMostTemperature, kFine = SamplingOptions::kMostPenalty;
  const auto within = [](double x, double least, double most) { return x >= least && x <= most; };
  need(within(o.temperature, 0, kMost), "temperature", o.temperature,
       "a number from 0 to " + shortest(kMost));
  need(o.top_k >= 0, "top_k", static_cast<double>(o.top_k), "a whole number, 0 or more");
  need(within(o.top_p, 0, 1), "top_p", o.top_p, "a number from 0 to 1");
  need(within(o.min_p, 0, 1), "min_p", o.min_p, "a number from 0 to 1");
  need(within(o.typical_p, 0, 1), "typical_p", o.typical_p, "a number from 0 to 1");
  need(o.repetition_penalty > 0 && o.repetition_penalty <= kFine, "repetition_penalty",
       o.repetition_penalty, "a number above 0, to " + shortest(kFine));
  const std::string both = "a number from -" + shortest(kFine) + " to " + shortest(kFine);
  need(within(o.presence_penalty, -kFine, kFine), "presence_penalty", o.presence_penalty, both);
  need(within(o.frequency_penalty, -kFine, kFine), "frequency_penalty", o.frequency_penalty, both);
}

std::int32_t sample_token(std::span<const float> given, const SamplingOptions& o,
                          std::int64_t index, const TextSoFar& text) {
  check(o);
  check_logits(given);
  std::vector<float> kept;
  const std::span<const float> logits = penalized(given, o, text, kept);
  if (o.temperature == 0)  // the first of the likeliest
    return static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
  Candidates c = candidates(logits, o);
  keep_top_p(c, o.top_p);
  if (o.min_p > 0) keep_min_p(c, o.min_p);
  if (o.typical_p < 1) keep_typical(c, o.typical_p);
  double at =
      scalar::uniform({o.seed, o.stream, 0, 0x67656e}, static_cast<std::uint64_t>(index)) * c.total;
  for (std::size_t i = 0; i < c.tokens.size(); ++i)
    if ((at -= c.weights[i]) < 0) return c.tokens[i];
  return c.tokens.back();
}

}  // namespace aloft
