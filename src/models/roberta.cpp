#include "models/roberta.h"

#include "base/error.h"

namespace aloft::models {
namespace {

EncoderDescription description(const RobertaConfig& c) {
  if (c.longest() < 1 || c.longest() != c.positions - c.padding - 1)
    throw UserError("E0210", "RoBERTa: positions do not fit")
        .saw(std::to_string(c.positions) + " rows, padding " + std::to_string(c.padding) +
             ", texts of up to " + std::to_string(c.longest()))
        .need("padding + 1 rows, and one for each token of the longest text");
  EncoderDescription d = c.description();
  d.family = "RoBERTa";
  d.head = EncoderDescription::Head::Dense;
  d.padding = c.padding;
  d.context = c.longest();
  return d;
}

std::optional<Misfit> misfit(const SettingValues& values) {
  const auto whole = [&](std::string_view key) {
    return std::get<std::int64_t>(values.find(key)->second);
  };
  if (whole("padding") < 0)  // as transformers, which fails
    return Misfit{"padding",
                  "null, and positions are counted behind that token, 1 in RoBERTa's own files"};
  const std::int64_t left = whole("positions") - whole("padding") - 1;
  if (left < 1)
    return Misfit{"positions", "{positions} rows{?positions} leave none behind padding {padding}"};
  if (whole("context") > 0 && whole("context") != left)
    return Misfit{"context",
                  "{context}{?context} is not what {positions} positions leave behind padding "
                  "{padding}"};
  return heads_misfit(values);
}

ModelSize size(std::string_view name, std::int64_t layers, std::int64_t heads, std::int64_t dim,
               std::int64_t hidden) {
  return {{name},
          {{"layers", layers},
           {"heads", heads},
           {"dim", dim},
           {"hidden", hidden},
           {"positions", std::int64_t{514}},
           {"vocab", std::int64_t{50265}}}};
}

}  // namespace

Roberta::Roberta(const RobertaConfig& config) : Encoder(description(config)) {}

ModelFamily roberta_family() {
  using I = std::int64_t;
  SettingValues start = encoder_start();
  start["positions"] = I{258};
  ModelFamily f = family_of<RobertaConfig, Roberta>(
      "roberta", "classifier of texts: BERT, positions behind padding", start);
  f.sizes = {size("roberta-base", 12, 12, 768, 3072), size("roberta-large", 24, 16, 1024, 4096)};
  f.misfit = misfit;
  f.least_kept = decoder_least_kept;
  f.published = encoder_published("roberta", "RobertaForSequenceClassification", "roberta.");
  f.made_up = {{"vocab", I{4096}}, {"classes", I{2}}};
  return f;
}

}  // namespace aloft::models
