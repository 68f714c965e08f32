#include "runner/generation/options/other_names.h"

#include <algorithm>

namespace mote {
namespace {

// Of llama.cpp, Ollama, vLLM and OpenAI's API.
constexpr OtherName kOtherNames[] = {
    {"ctx_size", "context_length"},
    {"dry_sequence_breaker", "dry_sequence_breakers"},
    {"kv_type", "kv_dtype"},
    {"max_completion_tokens", "max_new_tokens"},
    {"max_model_len", "context_length"},
    {"max_tokens", "max_new_tokens"},
    {"min_tokens", "min_new_tokens"},
    {"mirostat_ent", "mirostat_tau"},
    {"mirostat_lr", "mirostat_eta"},
    {"n_ctx", "context_length"},
    {"n_predict", "max_new_tokens"},
    {"n_threads", "threads"},
    {"num_ctx", "context_length"},
    {"num_predict", "max_new_tokens"},
    {"num_threads", "threads"},
    {"predict", "max_new_tokens"},
    {"repeat_penalty", "repetition_penalty"},
    {"stop", "stop_strings"},
    {"temp", "temperature"},
    {"top_nsigma", "top_n_sigma"},
    {"typical", "typical_p"},
    {"ubatch_size", "prefill_chunk"},
    {"use_mmap", "mmap"},
};

constexpr AnsweredName kAnsweredNames[] = {
    {"assistant_model", "a draft model is given with --draft, in Python as draft_model of a session"},
    {"cache_implementation", "the cache has context_length positions of kv_dtype"},
    {"cache_type_k", "kv_dtype is for keys and values alike"},
    {"cache_type_v", "kv_dtype is for keys and values alike"},
    {"device", "backend says what runs the model"},
    {"device_map", "backend says what runs the model"},
    {"dry_penalty_last_n", "dry_window is the number of tokens (0: all)"},
    {"dtype", "weights have the recipe of the export, caches have kv_dtype"},
    {"eos_token_id", "stop_token_ids adds tokens that end the text, ignore_eos goes on after the model's own"},
    {"flash_attn", "attention is always computed in blocks"},
    {"gpu_layers", "backend says what runs the model"},
    {"guidance_scale", "it is not offered"},
    {"max_length", "it counts the prompt too; max_new_tokens does not"},
    {"min_length", "it counts the prompt too; min_new_tokens does not"},
    {"mlock", "mmap = false reads the file into memory"},
    {"n_gpu_layers", "backend says what runs the model"},
    {"n_keep", "num_keep is the number of tokens (-1: those of the system message)"},
    {"keep", "num_keep is the number of tokens (-1: those of the system message)"},
    {"n_probs", "logprobs = true with top_logprobs"},
    {"num_beams", "beams have a search of their own, in Python Session.beam_search"},
    {"num_return_sequences", "each text is a generation of its own; Model.generate_batch computes several together"},
    {"output_logits", "logprobs = true, or the logits of a session"},
    {"output_scores", "logprobs = true, or the logits of a session"},
    {"penalty_alpha", "it is not offered"},
    {"prompt_lookup_num_tokens", "speculative = lookup with draft_tokens"},
    {"repeat_last_n", "repetition_window is the number of tokens (0: all)"},
    {"tfs_z", "it is not offered"},
    {"torch_dtype", "weights have the recipe of the export, caches have kv_dtype"},
    {"use_cache", "the cache is always used"},
};

}  // namespace

std::span<const OtherName> other_names() { return kOtherNames; }

std::string_view answer_for(std::string_view name) {
  const auto found = std::ranges::find(kAnsweredNames, name, &AnsweredName::name);
  return found == std::end(kAnsweredNames) ? "" : found->answer;
}

}  // namespace mote
