#include "models/gpt_neox.h"

namespace aloft::models {

DecoderDescription GptNeoxDefaults::description(const GptNeoxConfig& c) {
  DecoderDescription d = rotary_description(c, "GPT-NeoX");
  d.names.tokens = "embed_in", d.names.norm = "final_layer_norm", d.names.head = "embed_out";
  d.names.attention = "attention";
  d.norm = NormKind::Layer;
  d.attention.layout = nn::QkvLayout::ByHeads;
  d.attention.qkv_name = "query_key_value", d.attention.out_name = "dense";
  d.feed_forward.kind = FeedForward::Kind::Plain;
  d.feed_forward.in_name = "dense_h_to_4h", d.feed_forward.out_name = "dense_4h_to_h";
  d.feed_forward.in.bias = d.feed_forward.out.bias = true;
  d.is_parallel = c.parallel;
  return d;
}

namespace {

PublishedForm published() {
  PublishedForm p = rotary_published("gpt_neox", "GPTNeoXForCausalLM");
  p.prefix = "gpt_neox.";
  p.without_prefix = {"embed_out.weight"};
  p.renamed_tensors = {{"lm_head.weight", "embed_out.weight"}};  // of transformers 5
  p.ignored = {"layers.*.attention.bias", "layers.*.attention.masked_bias",
               "layers.*.attention.rotary_emb.inv_freq"};
  const PublishedForm::Renamed own[] = {{"rope_parameters.rope_theta", "rotary_emb_base"},
                                        {"rope_parameters.partial_rotary_factor", "rotary_pct"},
                                        {"rope_scaling.rope_theta", "rotary_emb_base"},
                                        {"rope_scaling.partial_rotary_factor", "rotary_pct"}};
  p.renamed.insert(p.renamed.begin(), std::begin(own), std::end(own));
  p.harmless.insert(p.harmless.end(), {"hidden_dropout", "classifier_dropout",
                                       "attention_probs_dropout_prob", "hidden_dropout_prob"});
  return p;
}

}  // namespace

ModelFamily gpt_neox_family() {
  using C = GptNeoxConfig;
  ModelFamily f = family_of<C, GptNeox>(
      "gpt_neox", "decoder: rotary positions, layer norms, parallel parts", rotary_start(false));
  f.sizes = {rotary_size("pythia-70m", C{6, 8, 0, 512, 2048}), rotary_size("pythia-160m", C{}),
             rotary_size("pythia-1b", C{16, 8, 0, 2048, 8192}),
             rotary_size("gpt-neox-20b", C{44, 64, 0, 6144, 24576, 50432})};
  f.misfit = rotary_misfit<C>;
  f.least_kept = decoder_least_kept;
  f.published = published();
  f.made_up = {{"vocab", std::int64_t{4096}}};
  return f;
}

}  // namespace aloft::models
