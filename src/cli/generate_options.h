// What `aloft generate` is asked for, and the ways in which it is done.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/shared_options.h"
#include "data/text_stream.h"
#include "data/tokenizer.h"
#include "infer/sampling.h"
#include "infer/saved_model.h"
#include "infer/stop_strings.h"

namespace aloft::cli {

struct GenerateOptions {
  SavedModelWords model;
  std::string prompt, prompts, message, system, chat_template, precision;
  std::vector<std::string> stop;
  bool has_prompt = false, has_message = false, has_tokens = false, is_chat = false;
  std::int64_t tokens = 100, samples = 1;
  std::int64_t batch = 0;    // texts at once; 0: 8, or samples where these are more
  std::int64_t context = 0;  // of a conversation; 0: the model's, with --chat at most 4,096
  std::int64_t beams = 1;
  double length_penalty = 1;
  std::optional<std::int64_t> threads;  // 0: all
  SamplingOptions sampling;
  bool past_end = false, as_json = false;
  bool has_published_tokens = false;  // `tokens` is what generation_config.json says
  std::set<std::string> given;        // the options of the command line that such a file says, too
  std::vector<std::string> draws;  // the options given that mean something only where it is drawn
};

// A prompt as the model gets it.
struct ModelPrompt {
  std::string text;
  std::vector<std::int32_t> tokens;
  std::string place;  // where it was asked, "a.jsonl:12"; "" where in no file
  // Tokens that its text may have, where the context has room for no more and nobody asked for so
  // many.
  std::int64_t room = INT64_MAX;
};

// A text that grows: what is certain of it, up to a string that ends it.
class GrowingText {
 public:
  // `is_answer`: in whole characters and without the model's own tokens, as people read it; else
  // every token's bytes.
  GrowingText(const Tokenizer& tokenizer, const std::vector<std::string>& stop, bool is_answer);
  std::string add(std::int32_t token);
  std::string rest();  // where it ends otherwise
  bool has_ended() const { return stop_.has_ended(); }
  const std::string& text() const { return text_; }

 private:
  std::string said(std::string text);
  const Tokenizer* tokenizer_;
  StopStrings stop_;
  TextStream stream_;
  bool is_answer_;
  std::string text_;
};

// To stdout, at once; on a terminal no byte commands it.
void show(std::string_view text);

// What all of them advise where memory does not do.
inline constexpr const char* kSmallerGenerator =
    "a smaller --batch, fewer --tokens or --samples, a smaller model, or a machine with more "
    "memory";

// Texts that are drawn, several at once: of prompts that are conversations `is_answer`.
void generate_texts(const GenerateOptions& o, SavedModel& saved,
                    const std::vector<ModelPrompt>& prompts, bool is_answer,
                    const std::vector<std::int32_t>& ends);
// The likeliest texts by beam search, prompt after prompt.
void generate_beams(const GenerateOptions& o, SavedModel& saved,
                    const std::vector<ModelPrompt>& prompts, bool is_answer,
                    const std::vector<std::int32_t>& ends);
// A conversation, from stdin, a line a turn.
void generate_chat(const GenerateOptions& o, SavedModel& saved);

}  // namespace aloft::cli
