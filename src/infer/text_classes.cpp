#include "infer/text_classes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "frontend/programs.h"
#include "models/logits.h"
#include "ops/cast.h"
#include "recipe/memory_need.h"

namespace aloft {
namespace {

std::int64_t length_of(const LabelledTexts& texts, std::size_t i) {
  return static_cast<std::int64_t>(texts.starts[i + 1] - texts.starts[i]);
}

void check(const LabelledTexts& texts, const models::Classifier& model) {
  const models::TextClassifier& reader = *model.of_texts();
  for (std::size_t i = 0; i < texts.labels.size(); ++i)
    if (texts.labels[i] >= model.classes())
      throw UserError("E0716", "the labels are not those of the model")
          .saw(fmt::format("label {}, of text {}", texts.labels[i], i + 1))
          .need(fmt::format("labels from 0 to {}", model.classes() - 1));
  for (const std::int32_t type : texts.types)
    if (type >= reader.token_types())
      throw UserError("E0727", "the data is not what the task learns from")
          .saw(fmt::format("tokens of the type {}", type))
          .need(fmt::format("types below {}, model.token_types", reader.token_types()))
          .advice("texts without a \"text_pair\"");
  for (const std::int32_t token : texts.tokens)
    if (token >= reader.vocab())
      throw DataError("E0522", fmt::format("token {} is outside the vocabulary", token))
          .need(fmt::format("0 to {}", reader.vocab() - 1));
}

// Runs texts, several at a time.
class Rows {
 public:
  Rows(models::Classifier& model, const LabelledTexts& texts, const TextClassesOptions& o)
      : texts_(texts), o_(o), classes_(model.classes()), programs_(o.threads) {
    model.eval();
    o_.batch = std::min(o_.batch, static_cast<std::int64_t>(texts.examples()));
    for (std::size_t i = 0; i < texts.examples(); ++i)
      length_ = std::max(length_, length_of(texts, i));
    const TensorType rows{DType::I32, {o_.batch, length_}}, one{DType::I32, {o_.batch}};
    programs_.add("classes", {{"tokens", rows}, {"types", rows}, {"lengths", one}},
                  [&](const std::vector<Tensor>& in) {
                    ModuleScope scope("", model.policy());
                    return std::vector<std::pair<std::string, Tensor>>{
                        {"logits", cast(models::outputs_of(model, in), DType::F32)}};
                  });
    need_memory_for(programs_.plan(), "fewer --windows, a smaller --length or a lower precision");
    programs_.finish();
  }

  TextClasses run() {
    for (std::size_t first = 0; first < texts_.examples();
         first += static_cast<std::size_t>(o_.batch)) {
      InterruptScope::leave_if_asked();
      run_from(first);
      if (o_.on_batch) o_.on_batch(result_);
    }
    return result_;
  }

 private:
  void run_from(std::size_t first) {
    const auto batch = static_cast<std::size_t>(o_.batch);
    const auto length = static_cast<std::size_t>(length_);
    const std::size_t rows = std::min(batch, texts_.examples() - first);
    std::vector<std::int32_t> tokens(batch * length, 0), types(batch * length, 0);
    std::vector<std::int32_t> lengths(batch, 1);  // of rows without a text: nobody asks for them
    for (std::size_t row = 0; row < rows; ++row) {
      const auto count = static_cast<std::size_t>(length_of(texts_, first + row));
      const auto at = static_cast<std::ptrdiff_t>(texts_.starts[first + row]);
      const auto to = static_cast<std::ptrdiff_t>(row * length);
      std::copy_n(texts_.tokens.begin() + at, count, tokens.begin() + to);
      std::copy_n(texts_.types.begin() + at, count, types.begin() + to);
      lengths[row] = static_cast<std::int32_t>(count);
    }
    programs_.input<std::int32_t>("classes", "tokens").set(tokens);
    programs_.input<std::int32_t>("classes", "types").set(types);
    programs_.input<std::int32_t>("classes", "lengths").set(lengths);
    programs_.run(programs_.find("classes"), {});
    const auto logits = programs_.output<float>("classes", "logits").read();
    const auto width = static_cast<std::size_t>(classes_);
    for (std::size_t row = 0; row < rows; ++row)
      judge({logits.begin() + row * width, width}, texts_.labels[first + row]);
  }

  void judge(std::span<const float> logits, std::int32_t label) {
    const auto likeliest = std::ranges::max_element(logits);
    double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - *likeliest);
    result_.nats += std::log(sum) + *likeliest - logits[static_cast<std::size_t>(label)];
    result_.right += likeliest - logits.begin() == label;
    ++result_.texts;
  }

  const LabelledTexts& texts_;
  TextClassesOptions o_;
  std::int64_t classes_, length_ = 1;
  Programs programs_;
  TextClasses result_;
};

}  // namespace

TextClasses classes_of_texts(models::Classifier& model, const LabelledTexts& texts,
                             const TextClassesOptions& options) {
  check(texts, model);
  return Rows(model, texts, options).run();
}

}  // namespace aloft
