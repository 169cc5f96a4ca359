#include "models/encoder_settings.h"

namespace aloft::models {

EncoderDescription EncoderConfig::description() const {
  EncoderDescription d;
  d.layers = layers, d.heads = heads, d.dim = dim, d.hidden = hidden, d.vocab = vocab;
  d.token_types = token_types, d.classes = classes;
  d.activation = activation;
  d.norm_eps = norm_eps;
  d.dropout = dropout, d.attention_dropout = attention_dropout;
  d.head_dropout = head_dropout < 0 ? dropout : head_dropout;
  d.init = nn::Init::normal(init_deviation);
  return d;
}

SettingValues encoder_start() {
  using I = std::int64_t;
  return {{"layers", I{4}},    {"heads", I{4}}, {"dim", I{256}},
          {"hidden", I{1024}}, {"vocab", I{0}}, {"classes", I{0}}};
}

PublishedForm encoder_published(std::string_view model_type, std::string_view architecture,
                                std::string_view prefix) {
  PublishedForm p;
  p.model_type = model_type;
  p.architecture = architecture;
  p.prefix = prefix;
  p.without_prefix = {"classifier.*"};
  p.fresh = {"pooler.*", "classifier.*"};
  p.ignored = {"embeddings.position_ids", "cls.*", "lm_head.*", "pooler.*"};
  p.fixed = {{"position_embedding_type", {"\"absolute\""}},
             {"problem_type", {"\"single_label_classification\""}}};
  p.renamed_tensors = {{"*.gamma", "*.weight"}, {"*.beta", "*.bias"}};  // of files of 2018
  p.harmless = {"tie_word_embeddings"};
  return p;
}

}  // namespace aloft::models
