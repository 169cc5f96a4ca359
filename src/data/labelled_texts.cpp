#include "data/labelled_texts.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "data/json_lines.h"

namespace aloft {
namespace {

using nlohmann::ordered_json;
using Ids = std::vector<std::int32_t>;

constexpr LineRefusal kRefusal = {"E0515", "a file of texts and labels cannot be read"};

// Takes tokens off the end of the longer text, of the first where they are alike, until they fit.
void cut_to(std::size_t most, Ids& first, Ids& second) {
  while (first.size() + second.size() > most)
    (first.size() >= second.size() ? first : second).pop_back();
}

class LineReader {
 public:
  LineReader(const Path& path, const Tokenizer& tokenizer, std::int64_t length)
      : lines_(path, kRefusal), tokenizer_(tokenizer), length_(static_cast<std::size_t>(length)) {}

  LabelledTexts read() {
    for (ordered_json example; lines_.next(example);) take(example);
    if (texts_.examples() == 0) wrong("no text");
    return std::move(texts_);
  }

 private:
  [[noreturn]] void wrong(const std::string& saw) const {
    lines_.refuse(saw, R"(a line such as {"text": "...", "label": 0}, perhaps with "text_pair")",
                  "correct the line, or leave it out");
  }

  void take(const ordered_json& example) {
    const auto label = example.find("label");
    if (label == example.end()) wrong("no \"label\", and " + keys_in(example));
    if (!label->is_number_integer() || *label < 0 ||
        *label >= std::numeric_limits<std::int32_t>::max())
      wrong("\"label\" that is " + json_text(*label));
    const auto pair = example.find("text_pair");
    const bool has_pair = pair != example.end() && !pair->is_null();
    add(lines_.text_at(example, "text"),
        has_pair ? std::optional(lines_.text_at(example, "text_pair")) : std::nullopt);
    texts_.labels.push_back(label->get<std::int32_t>());
  }

  void add(const std::string& text, const std::optional<std::string>& pair) {
    if (pair && !tokenizer_.framed_pair({}, {}))
      wrong("a text_pair, which a " + std::string(tokenizer_.kind()) +
            " tokenizer puts nothing between");
    Ids first = tokenizer_.encode(text), second = pair ? tokenizer_.encode(*pair) : Ids();
    const std::size_t around = framed({}, {}, pair.has_value()).ids.size();
    if (around >= length_)
      throw UserError("E0512", "the examples are too short for any text")
          .saw(std::to_string(length_) + " tokens an example")
          .need("more than the " + std::to_string(around) + " that the tokenizer adds")
          .advice("a larger data.length");
    const std::size_t most = length_ - around;
    if (first.size() + second.size() > most) {
      ++texts_.cut;
      cut_to(most, first, second);
    }
    const Framed all = framed(first, second, pair.has_value());
    texts_.tokens.insert(texts_.tokens.end(), all.ids.begin(), all.ids.end());
    texts_.types.insert(texts_.types.end(), all.types.begin(), all.types.end());
    texts_.starts.push_back(texts_.tokens.size());
  }

  Framed framed(const Ids& first, const Ids& second, bool is_pair) const {
    if (is_pair) return *tokenizer_.framed_pair(first, second);
    Framed one{tokenizer_.framed(first), {}};
    one.types.resize(one.ids.size());
    return one;
  }

  JsonLines lines_;
  const Tokenizer& tokenizer_;
  std::size_t length_;
  LabelledTexts texts_;
};

}  // namespace

LabelledTexts read_labelled_texts(const Path& path, const Tokenizer& tokenizer,
                                  std::int64_t length) {
  return LineReader(path, tokenizer, length).read();
}

LabelledTexts texts_of_rows(const LabelledTexts& all, const std::vector<std::uint64_t>& rows) {
  LabelledTexts out;
  for (const std::uint64_t row : rows) {
    const auto first = static_cast<std::ptrdiff_t>(all.starts[row]),
               end = static_cast<std::ptrdiff_t>(all.starts[row + 1]);
    out.tokens.insert(out.tokens.end(), all.tokens.begin() + first, all.tokens.begin() + end);
    out.types.insert(out.types.end(), all.types.begin() + first, all.types.begin() + end);
    out.starts.push_back(out.tokens.size());
    out.labels.push_back(all.labels[row]);
  }
  return out;
}

LabelledExamples::LabelledExamples(std::shared_ptr<const LabelledTexts> texts, std::int64_t length,
                                   const ArrayLoaderOptions& options)
    : texts_(std::move(texts)),
      length_(static_cast<std::size_t>(length)),
      options_(options),
      walk_(texts_->examples(), static_cast<std::uint64_t>(options.batch), options.last,
            options.epochs),
      position_(options.position) {}

const ExampleBatch* LabelledExamples::next() {
  const std::uint64_t rows = walk_.rows_at(position_);
  if (rows == 0) return nullptr;
  const auto batch = static_cast<std::size_t>(options_.batch);
  tokens_.assign(batch * length_, 0);
  types_.assign(batch * length_, 0);
  lengths_.assign(batch, 0);
  labels_.assign(batch, kIgnoredLabel);
  for (std::uint64_t row = 0; row < rows; ++row) {
    const std::uint64_t i = sample_at(walk_.sample(position_, row), texts_->examples(), options_);
    const std::uint64_t first = texts_->starts[i];
    const std::uint64_t count = std::min<std::uint64_t>(texts_->starts[i + 1] - first, length_);
    const auto copy = [&](const Ids& from, Ids& to) {
      std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(first), count,
                  to.begin() + static_cast<std::ptrdiff_t>(row * length_));
    };
    copy(texts_->tokens, tokens_);
    copy(texts_->types, types_);
    lengths_[row] = static_cast<std::int32_t>(count);
    labels_[row] = texts_->labels[i];
  }
  position_ += rows;
  batch_.columns = {std::as_bytes(std::span(tokens_)), std::as_bytes(std::span(types_)),
                    std::as_bytes(std::span(lengths_)), std::as_bytes(std::span(labels_))};
  batch_.rows = batch_.counted_targets = static_cast<std::int64_t>(rows);
  return &batch_;
}

}  // namespace aloft
