#include "train/recipe_fields.h"

namespace aloft {

// One row a key: long, and nothing but a table.
// NOLINTNEXTLINE(readability-function-size)
std::vector<RecipeField> recipe_fields(Recipe& r) {
  constexpr double kMany = 1e15;
  ModelSection& m = r.model;
  DataSection& d = r.data;
  OptimizerSection& o = r.optimizer;
  ScheduleSection& s = r.schedule;
  TrainSection& t = r.train;
  return {
      {"model.family", "architecture", &m.family, 0, 0, {"gpt2"}},
      {"model.size", "a published size, such as gpt2-124m; other keys override it", &m.size},
      {"model.layers", "transformer blocks", &m.layers, 1, 1000},
      {"model.heads", "attention heads; divides dim", &m.heads, 1, 1024},
      {"model.dim", "width", &m.dim, 1, 65536},
      {"model.context", "longest sequence, in tokens", &m.context, 1, 1 << 20},
      {"model.vocab", "rows of the token table; 0: the tokenizer's", &m.vocab, 0, 1 << 24},
      {"model.dropout", "probability", &m.dropout, 0, 0.99},
      {"model.init_std", "standard deviation of the first weights", &m.init_std, 0, 10},
      {"model.norm_eps", "layer norm's epsilon", &m.norm_eps, 1e-12, 1},
      {"model.bias", "biases in projections and norms", &m.bias},
      {"model.tied", "the head is the token table", &m.tied},
      {"data.text", "files, folders, globs", &d.text},
      {"data.train_tokens", "a token shard or .bin file, instead of text", &d.train_tokens},
      {"data.validation_tokens", "the same for validation", &d.validation_tokens},
      {"data.tokenizer.kind",
       "tokenizer",
       &d.tokenizer.kind,
       0,
       0,
       {"byte", "char", "bpe", "gpt2"}},
      {"data.tokenizer.vocab", "pieces (bpe)", &d.tokenizer.vocab, 1, 1 << 24},
      {"data.tokenizer.path", "load it from here instead of making it", &d.tokenizer.path},
      {"data.tokenizer.byte_fallback", "char: accept every input", &d.tokenizer.byte_fallback},
      {"data.validation", "share of the text", &d.validation, 0, 0.99},
      {"data.sampling", "order of samples", &d.sampling, 0, 0, {"windows", "random"}},
      {"data.cache", "folder of packed tokens; empty: the user's cache", &d.cache},
      {"optimizer.kind", "update rule", &o.kind, 0, 0, {"adamw", "adam", "sgd", "momentum"}},
      {"optimizer.lr", "peak learning rate", &o.lr, 0, kMostRate},
      {"optimizer.betas", "Adam's two decays", &o.betas},
      {"optimizer.eps", "Adam's epsilon", &o.eps, 0, 1},
      {"optimizer.weight_decay", "of weights; norms and no_decay excepted", &o.weight_decay, 0,
       kMostDecay},
      {"optimizer.momentum", "of momentum", &o.momentum, 0, 1},
      {"optimizer.nesterov", "Nesterov's momentum", &o.nesterov},
      {"optimizer.clip_norm", "largest global norm of the gradients; 0: none", &o.clip_norm, 0,
       1e9},
      {"optimizer.no_decay", "name patterns that do not decay; norms never do", &o.no_decay},
      {"optimizer.master",
       "fp32 masters of O2: their own, or bf16 weights and 16 more bits",
       &o.master,
       0,
       0,
       {"f32", "split"}},
      {"optimizer.groups", "parameters (name patterns) with their own lr and weight_decay",
       &o.groups},
      {"schedule.kind",
       "of the learning rate",
       &s.kind,
       0,
       0,
       {"constant", "linear", "cosine", "step", "one-cycle", "wsd"}},
      {"schedule.steps", "updates that it spans; 0: train.steps", &s.steps, 0, kMany},
      {"schedule.warmup", "updates of linear warm-up", &s.warmup, 0, kMany},
      {"schedule.final_lr", "at the end; below zero: a tenth of lr", &s.final_lr, -1, 1e6},
      {"schedule.step_size", "updates between drops (step)", &s.step_size, 1, kMany},
      {"schedule.gamma", "factor of a drop (step)", &s.gamma, 0, 1},
      {"schedule.decay", "updates of the final decay (wsd); 0: a fifth", &s.decay, 0, kMany},
      {"train.batch", "sequences a micro-batch", &t.batch, 1, 1 << 20},
      {"train.accumulate", "micro-batches an update", &t.accumulate, 1, 1 << 20},
      {"train.steps", "steps of the run, skipped ones included", &t.steps, 0, kMany},
      {"train.eval_every", "steps between evaluations; 0: at the end", &t.eval_every, 0, kMany},
      {"train.eval_batches", "batches an evaluation; 0: the whole split", &t.eval_batches, 0,
       kMany},
      {"train.checkpoint_every", "steps between checkpoints; 0: at the end", &t.checkpoint_every, 0,
       kMany},
      {"train.keep_checkpoints", "newest checkpoints kept; 0: all", &t.keep_checkpoints, 0, kMany},
      {"train.sample_every", "steps between samples; 0: at the end", &t.sample_every, 0, kMany},
      {"train.sample_tokens", "length of a sample", &t.sample_tokens, 0, 1 << 20},
      {"train.seed", "of everything random", &t.seed, 0, 9e15},
      {"train.mode", "compiled or op by op", &t.mode, 0, 0, {"graph", "eager"}},
      {"train.threads", "0: all the machine has", &t.threads, 0, 4096},
      {"train.skip_passes", "passes left out, such as fuse-elementwise; see `aloft passes`",
       &t.skip_passes},
  };
}

}  // namespace aloft
