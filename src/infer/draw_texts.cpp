#include "infer/draw_texts.h"

#include <algorithm>
#include <string>

#include "base/clock.h"
#include "base/error.h"

namespace aloft {
namespace {

void need(bool is_right, const std::string& saw, const std::string& least) {
  if (is_right) return;
  throw UserError("E0700", "an option of drawing text is out of range")
      .saw(saw)
      .need("a whole number, " + least + " or more");
}

void check(const DrawOptions& o) {
  check(o.sampling);
  need(o.ids >= 1, "ids = " + std::to_string(o.ids), "1");
  need(o.tokens >= 0, "tokens = " + std::to_string(o.tokens), "0");
}

// From where the generator stands, behind the prompts.
std::vector<DrawnText> draw(Generator& generator, std::span<const TextStart> starts,
                            const DrawOptions& o, double begun, const Drawn& drawn) {
  std::vector<DrawnText> texts(starts.size());
  std::vector<std::int32_t> next(static_cast<std::size_t>(generator.rows()));
  std::vector<std::vector<std::int32_t>> so_far;
  for (const TextStart& start : starts) so_far.push_back(start.prompt);
  std::vector<bool> is_done(texts.size());
  std::size_t open = texts.size();
  const auto leave = [&](std::size_t row) {
    generator.leave(static_cast<std::int64_t>(row));
    is_done[row] = true;
    --open;
  };
  for (std::int64_t i = 0; i < o.tokens && open > 0; ++i) {
    for (std::size_t row = 0; row < texts.size(); ++row)
      if (!is_done[row] && i >= starts[row].tokens) leave(row);
    if (open == 0) break;
    if (i > 0) generator.feed(next);
    for (std::size_t row = 0; row < texts.size(); ++row) {
      DrawnText& text = texts[row];
      if (is_done[row]) continue;
      SamplingOptions sampling = o.sampling;
      sampling.seed = starts[row].seed;
      sampling.stream = starts[row].stream;
      const auto number = static_cast<std::int64_t>(row);
      const std::int32_t token = sample_token(generator.logits(o.ids, number), sampling, i,
                                              {so_far[row], starts[row].prompt.size()});
      next[row] = token;
      if (std::ranges::find(o.ends, token) != o.ends.end()) {
        text.end = TextEnd::End;
      } else {
        so_far[row].push_back(token);
        text.tokens.push_back(token);
        if (drawn) drawn(number, token);
        if (o.stops && o.stops(number, token)) text.end = TextEnd::Stop;
      }
      text.seconds = monotonic_seconds() - begun;
      if (text.ended()) leave(row);
    }
  }
  return texts;
}

}  // namespace

std::vector<DrawnText> draw_texts(Generator& generator, std::span<const std::int32_t> prompt,
                                  const DrawOptions& o, const Drawn& drawn) {
  std::vector<TextStart> starts(static_cast<std::size_t>(generator.rows()),
                                {{prompt.begin(), prompt.end()}, o.sampling.seed, 0});
  for (std::size_t row = 0; row < starts.size(); ++row) starts[row].seed += row;
  return draw_texts(generator, starts, o, drawn);
}

std::vector<DrawnText> draw_texts(Generator& generator, std::span<const TextStart> starts,
                                  const DrawOptions& o, const Drawn& drawn) {
  check(o);
  const double begun = monotonic_seconds();
  if (starts.empty() || std::ssize(starts) > generator.rows())
    throw UserError("E0812", "a generator is given other texts than it has rows for")
        .saw(std::to_string(starts.size()))
        .need("1 to " + std::to_string(generator.rows()));
  std::vector<std::vector<std::int32_t>> rows(static_cast<std::size_t>(generator.rows()),
                                              starts[0].prompt);
  for (std::size_t row = 0; row < starts.size(); ++row) rows[row] = starts[row].prompt;
  generator.start_each(rows);
  for (std::size_t row = starts.size(); row < rows.size(); ++row)
    generator.leave(static_cast<std::int64_t>(row));
  return draw(generator, starts, o, begun, drawn);
}

DrawnText draw_on(Generator& generator, std::span<const std::int32_t> prompt, const DrawOptions& o,
                  const Drawn& drawn) {
  check(o);
  const TextStart start{{prompt.begin(), prompt.end()}, o.sampling.seed, o.sampling.stream};
  return draw(generator, {&start, 1}, o, monotonic_seconds(), drawn)[0];
}

}  // namespace aloft
