#include "models/bert.h"

namespace aloft::models {
namespace {

EncoderDescription description(const BertConfig& c) {
  EncoderDescription d = c.description();
  d.family = "BERT";
  d.context = c.context;
  return d;
}

ModelSize size(std::string_view name, std::string_view alias, std::int64_t layers,
               std::int64_t heads, std::int64_t dim, std::int64_t hidden) {
  return {{name, alias},
          {{"layers", layers},
           {"heads", heads},
           {"dim", dim},
           {"hidden", hidden},
           {"context", std::int64_t{512}},
           {"vocab", std::int64_t{30522}}}};
}

}  // namespace

Bert::Bert(const BertConfig& config) : Encoder(description(config)) {}

ModelFamily bert_family() {
  using I = std::int64_t;
  SettingValues start = encoder_start();
  start["context"] = I{256};
  ModelFamily f = family_of<BertConfig, Bert>(
      "bert", "classifier of texts: both directions, norms behind the parts", start);
  f.sizes = {size("bert-base", "bert-base-uncased", 12, 12, 768, 3072),
             size("bert-large", "bert-large-uncased", 24, 16, 1024, 4096)};
  f.misfit = heads_misfit;
  f.least_kept = decoder_least_kept;
  f.published = encoder_published("bert", "BertForSequenceClassification", "bert.");
  f.made_up = {{"vocab", I{4096}}, {"classes", I{2}}};
  return f;
}

}  // namespace aloft::models
