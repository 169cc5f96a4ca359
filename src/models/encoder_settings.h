// What BERT and RoBERTa say alike of their settings.
#pragma once

#include "models/decoder_parts.h"
#include "models/decoder_settings.h"
#include "models/encoder.h"
#include "models/family.h"
#include "models/joined_fields.h"

namespace aloft::models {

// The sizes of an encoder; the defaults are those of the smaller models of the papers.
struct EncoderConfig {
  // Blocks, heads of each, features of a position, width of the feed-forward part, tokens there
  // are, kinds of tokens, answers.
  std::int64_t layers = 12, heads = 12, dim = 768, hidden = 3072, vocab = 30522, token_types = 2,
               classes = 2;
  std::string activation = "gelu";
  double dropout = 0.1;            // behind the tables, and of what a part of a block adds
  double attention_dropout = 0.1;  // of attention's weights
  double head_dropout = -1;        // below 0: dropout
  double norm_eps = 1e-12;
  double init_deviation = 0.02;  // of the weights' first values
  friend bool operator==(const EncoderConfig&, const EncoderConfig&) = default;

  // What it comes to; the family, its head, padding and the longest text are the caller's.
  EncoderDescription description() const;
};

// The settings: keys of a recipe, and of config.json.
template <class C>
auto encoder_fields(std::int64_t vocab) {
  using I = std::int64_t;
  return FieldList{
      setting("layers", &C::layers, {1, 1000}, "transformer blocks",
              {.published = "num_hidden_layers", .assumed = I{12}}),
      setting("heads", &C::heads, {1, 1024}, "attention heads; divides dim",
              {.resumed = kOtherHeads, .published = "num_attention_heads", .assumed = I{12}}),
      setting("dim", &C::dim, {1, 65536}, "width", {.published = "hidden_size", .assumed = I{768}}),
      setting("hidden", &C::hidden, {1, 1 << 20}, "width of the feed-forward part",
              {.published = "intermediate_size", .assumed = I{3072}}),
      setting(
          "vocab", &C::vocab, {1, 1 << 24}, "rows of the token table; 0: the tokenizer's",
          {.is_of_data = true, .may_exceed = true, .published = "vocab_size", .assumed = vocab}),
      setting("token_types", &C::token_types, {1, 1 << 16}, "kinds of tokens: of which text one is",
              {.published = "type_vocab_size", .assumed = I{2}}),
      setting("classes", &C::classes, {2, 1 << 24}, "answers; 0: the data's",
              {.is_of_data = true,
               .may_exceed = true,
               .published = "num_labels",
               .assumed = I{0},
               .only_if_other = true}),
      setting("activation", &C::activation, {.words = decoder_activations()},
              "of the feed-forward part", {.published = "hidden_act", .assumed = "gelu"}),
      setting("dropout", &C::dropout, {0, 0.99}, "probability",
              {.may_change = true,
               .resumed = kOtherDropout,
               .published = "hidden_dropout_prob",
               .assumed = 0.1}),
      setting("attention_dropout", &C::attention_dropout, {0, 0.99},
              "probability, of attention's weights",
              {.may_change = true,
               .resumed = kOtherDropout,
               .published = "attention_probs_dropout_prob",
               .assumed = 0.1}),
      setting("head_dropout", &C::head_dropout, {-1, 0.99},
              "probability, before the classes; below 0: dropout",
              {.may_change = true,
               .resumed = kOtherDropout,
               .published = "classifier_dropout",
               .assumed = -1.0,
               .null_is = -1.0}),
      setting("norm_eps", &C::norm_eps, {1e-12, 1}, "the norms' epsilon",
              {.published = "layer_norm_eps", .assumed = 1e-12}),
      setting("init_std", &C::init_deviation, {0, 10}, "standard deviation of the first weights",
              {.is_of_start = true})};
}

// What recipes begin with.
SettingValues encoder_start();

// How transformers keeps one.
PublishedForm encoder_published(std::string_view model_type, std::string_view architecture,
                                std::string_view prefix);

}  // namespace aloft::models
