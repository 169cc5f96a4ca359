#include "infer/draw_texts.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

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

// Texts in the rows of a generator: a row whose text has ended takes the next that waits.
class Drawing {
 public:
  Drawing(Generator& generator, std::span<const TextStart> starts, const DrawOptions& o,
          const Drawn& drawn)
      : generator_(generator),
        starts_(starts),
        o_(o),
        drawn_(drawn),
        rows_(static_cast<std::size_t>(generator.rows())),
        next_(rows_.size()),
        texts_(starts.size()) {
    for (const TextStart& start : starts) so_far_.push_back(start.prompt);
  }

  // From where the generator stands, behind the first prompts, which it was given at `begun`.
  std::vector<DrawnText> run(double begun) {
    for (std::size_t row = 0; row < rows_.size() && waiting_ < starts_.size(); ++row, ++open_)
      rows_[row] = {waiting_++, begun};
    if (o_.tokens == 0) {
      for (std::size_t text = 0; text < texts_.size(); ++text) tell(text);
      return std::move(texts_);
    }
    for (;;) {
      for (std::size_t row = 0; row < rows_.size(); ++row)
        if (rows_[row].text) draw(row);
      // Logits are gone where a prompt is read: every row has been drawn from by now.
      for (std::size_t row = 0; row < rows_.size(); ++row)
        if (std::exchange(rows_[row].is_done, false)) follow(row);
      if (open_ == 0) return std::move(texts_);
      generator_.feed(next_);
    }
  }

 private:
  struct Row {
    std::optional<std::size_t> text;
    double begun = 0;
    bool is_done = false;
  };

  void draw(std::size_t row) {
    const std::size_t number = *rows_[row].text;
    const TextStart& start = starts_[number];
    DrawnText& text = texts_[number];
    const std::int64_t most = std::min(o_.tokens, start.tokens);
    if (most <= 0) return finish(row);
    SamplingOptions sampling = o_.sampling;
    sampling.seed = start.seed;
    sampling.stream = start.stream;
    const std::int32_t token =
        sample_token(generator_.logits(o_.ids, static_cast<std::int64_t>(row)), sampling,
                     std::ssize(text.tokens), {so_far_[number], start.prompt.size()});
    next_[row] = token;
    const auto at = static_cast<std::int64_t>(number);
    if (std::ranges::find(o_.ends, token) != o_.ends.end()) {
      text.end = TextEnd::End;
    } else {
      so_far_[number].push_back(token);
      text.tokens.push_back(token);
      if (drawn_) drawn_(at, token);
      if (o_.stops && o_.stops(at, token)) text.end = TextEnd::Stop;
    }
    text.seconds = monotonic_seconds() - rows_[row].begun;
    if (text.ended() || std::ssize(text.tokens) >= most) finish(row);
  }

  void finish(std::size_t row) {
    tell(*rows_[row].text);
    rows_[row].is_done = true;
  }

  void tell(std::size_t text) const {
    if (o_.done) o_.done(static_cast<std::int64_t>(text), texts_[text]);
  }

  // What comes into a row whose text is done.
  void follow(std::size_t row) {
    const bool was_ended = texts_[*rows_[row].text].ended();
    rows_[row] = {};
    if (waiting_ < starts_.size()) {
      rows_[row] = {waiting_, monotonic_seconds()};
      generator_.begin(static_cast<std::int64_t>(row), starts_[waiting_++].prompt);
      return;
    }
    if (was_ended || open_ > 1) generator_.leave(static_cast<std::int64_t>(row));
    --open_;
  }

  Generator& generator_;
  std::span<const TextStart> starts_;
  const DrawOptions& o_;
  const Drawn& drawn_;
  std::vector<Row> rows_;
  std::vector<std::int32_t> next_;
  std::vector<DrawnText> texts_;
  std::vector<std::vector<std::int32_t>> so_far_;
  std::size_t waiting_ = 0, open_ = 0;
};

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
  if (starts.empty() || (std::ssize(starts) > generator.rows() && !generator.renews()))
    throw UserError("E0812", "a generator is given other texts than it has rows for")
        .saw(std::to_string(starts.size()))
        .need("1 to " + std::to_string(generator.rows()) +
              ", or RowLengths::Renewed when the generator is made");
  std::vector<std::vector<std::int32_t>> rows(static_cast<std::size_t>(generator.rows()),
                                              starts[0].prompt);
  for (std::size_t row = 0; row < std::min(starts.size(), rows.size()); ++row)
    rows[row] = starts[row].prompt;
  generator.start_each(rows);
  for (std::size_t row = starts.size(); row < rows.size(); ++row)
    generator.leave(static_cast<std::int64_t>(row));
  return Drawing(generator, starts, o, drawn).run(begun);
}

DrawnText draw_on(Generator& generator, std::span<const std::int32_t> prompt, const DrawOptions& o,
                  const Drawn& drawn) {
  check(o);
  const TextStart start{{prompt.begin(), prompt.end()}, o.sampling.seed, o.sampling.stream};
  return Drawing(generator, {&start, 1}, o, drawn).run(monotonic_seconds())[0];
}

}  // namespace aloft
