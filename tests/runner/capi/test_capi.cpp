#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/runner/capi/fixture.h"

extern "C" const char* version_seen_from_c(void);

namespace mote {
namespace {

// The events that wait, one a line.
std::string take_events(mote_reply* reply) {
  std::string text;
  auto event = sized<mote_reply_event>();
  while (mote_reply_next_event(reply, &event, nullptr) == MOTE_OK && event.kind != MOTE_REPLY_NONE) {
    text += std::to_string(event.kind) + " " + std::to_string(event.call_index) + " " +
            std::string(event.text, event.text_bytes) + " " + event.id + "\n";
  }
  return text;
}

TEST(CApiNames, finish_reasons_have_names) {
  EXPECT_STREQ(mote_finish_reason_name(MOTE_FINISH_EOS), "eos");
  EXPECT_STREQ(mote_finish_reason_name(MOTE_FINISH_STOP_STRING), "stop_string");
  EXPECT_EQ(mote_finish_reason_name(MOTE_FINISH_NONE), nullptr);
  EXPECT_EQ(mote_finish_reason_name(static_cast<mote_finish_reason>(1000)), nullptr);
}

TEST(CApiReply, reads_a_reply_in_pieces) {
  auto error = sized<mote_error>();
  auto options = sized<mote_reply_options>();
  options.chat_template = "'[TOOL_CALLS]' + name + '[ARGS]'";
  mote_reply* reply = nullptr;
  ASSERT_EQ(mote_reply_open(&options, &reply, &error), MOTE_OK) << error.message;
  const char* name = nullptr;
  ASSERT_EQ(mote_reply_format(reply, &name, &error), MOTE_OK);
  EXPECT_STREQ(name, "mistral");
  ASSERT_EQ(mote_reply_push(reply, "Hi[TOOL", 7, &error), MOTE_OK);
  EXPECT_EQ(take_events(reply), "1 0 Hi \n");
  EXPECT_EQ(take_events(reply), "");
  constexpr std::string_view kRest = "_CALLS]f[CALL_ID]abc[ARGS]{\"a\": 1}[TOOL_";
  ASSERT_EQ(mote_reply_push(reply, kRest.data(), kRest.size(), &error), MOTE_OK);
  ASSERT_EQ(mote_reply_finish(reply, &error), MOTE_OK);
  EXPECT_EQ(take_events(reply), "3 0 f abc\n4 0 {\"a\": 1} \n5 0  abc\n1 0 [TOOL_ \n");
  char* json = nullptr;
  ASSERT_EQ(mote_reply_message(reply, &json, &error), MOTE_OK);
  EXPECT_EQ(taken(json),
            R"({"role": "assistant", "content": "Hi[TOOL_", "tool_calls": [{"type": "function", "id": "abc", )"
            R"("function": {"name": "f", "arguments": {"a": 1}}}]})");
  EXPECT_EQ(mote_reply_finish(reply, &error), MOTE_OK);
  EXPECT_EQ(mote_reply_push(reply, "x", 1, &error), MOTE_ERROR_INVALID_ARGUMENT);
  mote_reply_close(reply);
}

TEST(CApiReply, options_are_checked) {
  auto error = sized<mote_error>();
  auto options = sized<mote_reply_options>();
  options.format = "nothing";
  mote_reply* reply = nullptr;
  EXPECT_EQ(mote_reply_open(&options, &reply, &error), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(error.message, "format = \"nothing\": must be one of gpt-oss, "), nullptr) << error.message;
  EXPECT_EQ(reply, nullptr);
  options.format = nullptr;
  options.tools = "{";
  EXPECT_EQ(mote_reply_open(&options, &reply, &error), MOTE_ERROR_INVALID_ARGUMENT);
  options.struct_size = 0;
  EXPECT_EQ(mote_reply_open(&options, &reply, &error), MOTE_ERROR_INVALID_ARGUMENT);
  char* json = nullptr;
  ASSERT_EQ(mote_reply_formats(&json, &error), MOTE_OK);
  EXPECT_NE(taken(json).find("\"hermes\""), std::string::npos);
}

TEST(CApiReply, null_is_an_error_everywhere) {
  auto options = sized<mote_reply_options>();
  auto event = sized<mote_reply_event>();
  mote_reply* reply = nullptr;
  ASSERT_EQ(mote_reply_open(&options, &reply, nullptr), MOTE_OK);
  const char* name = nullptr;
  char* json = nullptr;
  mote_reply* opened = nullptr;
  for (const int32_t code :
       {mote_reply_open(nullptr, &opened, nullptr), mote_reply_open(&options, nullptr, nullptr),
        mote_model_reply_open(nullptr, &options, &opened, nullptr), mote_reply_formats(nullptr, nullptr),
        mote_reply_format(nullptr, &name, nullptr), mote_reply_format(reply, nullptr, nullptr),
        mote_reply_push(nullptr, "x", 1, nullptr), mote_reply_push(reply, nullptr, 1, nullptr),
        mote_reply_finish(nullptr, nullptr), mote_reply_next_event(nullptr, &event, nullptr),
        mote_reply_next_event(reply, nullptr, nullptr), mote_reply_message(nullptr, &json, nullptr),
        mote_reply_message(reply, nullptr, nullptr)}) {
    EXPECT_EQ(code, MOTE_ERROR_INVALID_ARGUMENT);
  }
  EXPECT_EQ(mote_reply_push(reply, nullptr, 0, nullptr), MOTE_OK);
  mote_reply_close(reply);
  mote_reply_close(nullptr);
}

TEST_F(CApi, a_model_reads_replies_by_its_template) {
  mote_reply* reply = nullptr;
  ASSERT_EQ(mote_model_reply_open(model_, nullptr, &reply, &error_), MOTE_OK) << error_.message;
  const char* name = nullptr;
  ASSERT_EQ(mote_reply_format(reply, &name, &error_), MOTE_OK);
  EXPECT_STREQ(name, "text");
  mote_reply_close(reply);
}

TEST_F(CApi, null_is_an_error_everywhere) {
  const int32_t id = 1;
  float logit = 0.0f;
  char* text = nullptr;
  size_t count = 0;
  mote_generation* generation = nullptr;
  mote_model* opened = nullptr;
  mote_session* opened_session = nullptr;
  const int32_t codes[] = {
      mote_model_open(nullptr, nullptr, &opened, nullptr),
      mote_model_open("x", nullptr, nullptr, &error_),
      mote_model_get_info(nullptr, nullptr, &error_),
      mote_model_get_info(nullptr, nullptr, nullptr),
      mote_model_describe(nullptr, &text, &error_),
      mote_describe_file(nullptr, &text, &error_),
      mote_describe_file("x", nullptr, &error_),
      mote_model_chat_template(nullptr, &text, nullptr, &error_),
      mote_model_generation_config(nullptr, &text, &error_),
      mote_model_check_segments(nullptr, &error_),
      mote_model_release_pages(nullptr, &error_),
      mote_tokenizer_check(nullptr, 0, &error_),
      mote_tokenize(nullptr, "a", 1, 1, 1, nullptr, 0, &count, &error_),
      mote_detokenize(nullptr, &id, 1, 0, &text, nullptr, &error_),
      mote_session_open(nullptr, nullptr, &opened_session, &error_),
      mote_generation_begin(nullptr, &id, 1, nullptr, &generation, &error_),
      mote_generation_next(nullptr, nullptr, &error_),
      mote_generation_statistics(nullptr, nullptr, &error_),
      mote_sampling_probabilities(nullptr, 1, nullptr, 0, 0, nullptr, &logit, &error_),
      mote_sampling_probabilities(&logit, 1, nullptr, 0, 0, nullptr, nullptr, &error_),
      mote_sampling_probabilities(&logit, 1, nullptr, 1, 0, nullptr, &logit, &error_),
      mote_get_memory(nullptr, &error_),
  };
  for (size_t i = 0; i < std::size(codes); ++i) EXPECT_EQ(codes[i], MOTE_ERROR_INVALID_ARGUMENT) << "call " << i;
  mote_model_close(nullptr);
  mote_session_close(nullptr);
  mote_generation_end(nullptr);
  mote_session_cancel(nullptr);
  mote_session_forget_cancel(nullptr);
  mote_string_free(nullptr);
  EXPECT_EQ(mote_session_position(nullptr), -1);
}

TEST_F(CApi, lists_of_options_are_read) {
  const GivenOptions options(R"({"sequence_bias": [[[2], "-inf"], [[3, 1, 0], 5]]})");
  const float logits[4] = {1.0f, 2.0f, 3.0f, 0.0f};
  float found[4];
  const int32_t previous[] = {0, 3, 1};
  const auto sample = [&] { return mote_sampling_probabilities(logits, 4, previous, 3, 0, options, found, &error_); };
  ASSERT_EQ(sample(), MOTE_OK) << error_.message;
  EXPECT_EQ(found[0], 1.0f);  // what follows 3, 1 is liked, the largest is banned
  EXPECT_EQ(options.refusal("sequence_bias", "[[null, 1]]").find("sequence_bias = [[null,1]]: must be "), 0u);
  EXPECT_NE(options.refusal("sequence_bias", "[[[], 1]]"), "");
  EXPECT_NE(options.refusal("dry_sequence_breakers", "[null]"), "");
  options.set(R"({"dry_sequence_breakers": [4]})");
  EXPECT_EQ(sample(), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.message, "dry_sequence_breakers: token id 4: must be 0..3");
}

TEST_F(CApi, null_beside_a_valid_handle_is_an_error) {
  EXPECT_EQ(mote_session_prefill(session_, nullptr, 3, nullptr, &error_), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(mote_session_prefill(session_, nullptr, 0, nullptr, &error_), MOTE_ERROR_INVALID_ARGUMENT);
  const int32_t id = 1;
  EXPECT_EQ(mote_session_verify(session_, &id, 1, nullptr, &error_), MOTE_ERROR_INVALID_ARGUMENT);
  size_t count = 0;
  EXPECT_EQ(mote_tokenize(model_, nullptr, 3, 1, 1, nullptr, 0, &count, &error_), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(mote_tokenize(model_, "abc", 3, 1, 1, nullptr, 0, nullptr, &error_), MOTE_ERROR_INVALID_ARGUMENT);
}

TEST_F(CApi, an_error_needs_no_room_and_is_cut_to_what_there_is) {
  mote_model* opened = nullptr;
  EXPECT_EQ(mote_model_open("missing.mote", nullptr, &opened, nullptr), MOTE_ERROR_FILE_NOT_FOUND);
  auto error = sized<mote_error>();
  error.struct_size = static_cast<uint32_t>(offsetof(mote_error, message)) + 8;
  std::memset(error.message, 'x', sizeof error.message);
  EXPECT_EQ(mote_model_open("missing.mote", nullptr, &opened, &error), MOTE_ERROR_FILE_NOT_FOUND);
  EXPECT_STREQ(error.message, "missing");
  EXPECT_EQ(error.message[8], 'x');
  error.struct_size = 0;
  EXPECT_EQ(mote_model_open("missing.mote", nullptr, &opened, &error), MOTE_ERROR_FILE_NOT_FOUND);
  EXPECT_EQ(opened, nullptr);
}

TEST_F(CApi, older_and_newer_structs_are_understood) {
  auto info = sized<mote_model_info>();
  info.struct_size = offsetof(mote_model_info, has_tokenizer);
  info.has_tokenizer = 77;
  ASSERT_EQ(mote_model_get_info(model_, &info, &error_), MOTE_OK);
  EXPECT_EQ(info.vocab_size, 19);
  EXPECT_EQ(info.has_tokenizer, 77);
  EXPECT_EQ(info.struct_size, offsetof(mote_model_info, has_tokenizer));
  info.struct_size = 0;
  EXPECT_EQ(mote_model_get_info(model_, &info, &error_), MOTE_ERROR_INVALID_ARGUMENT);

  struct {
    mote_reply_options known;
    int32_t unknown[8];
  } newer{};
  newer.known.struct_size = sizeof newer;
  newer.known.format = "mistral";
  auto older = sized<mote_reply_options>();
  older.struct_size = offsetof(mote_reply_options, tools);
  older.format = "mistral";
  older.tools = "{";  // not seen
  for (const mote_reply_options* options : {&newer.known, &older}) {
    mote_reply* reply = nullptr;
    ASSERT_EQ(mote_reply_open(options, &reply, &error_), MOTE_OK) << error_.message;
    const char* name = nullptr;
    ASSERT_EQ(mote_reply_format(reply, &name, &error_), MOTE_OK);
    EXPECT_STREQ(name, "mistral");
    mote_reply_close(reply);
  }
}

TEST_F(CApi, a_way_to_load_that_there_is_not_is_named) {
  const GivenOptions options;
  EXPECT_EQ(options.refusal("mmap", "2"), "mmap = \"2\": must be true or false");
  EXPECT_NE(options.refusal("mmap", "read"), "");
  EXPECT_EQ(options.refusal("mmap", "false"), "");
}

TEST_F(CApi, bad_options_are_named) {
  const GivenOptions options;
  EXPECT_EQ(options.refusal("kv_dtype", "int9"), "kv_dtype = \"int9\": must be one of float32, float16, int8, int4");
  EXPECT_EQ(options.refusal("stop_strings", "[null]").find("stop_strings = [null]: must be "), 0u);
  EXPECT_EQ(options.refusal("stop_token_ids", "null").find("stop_token_ids = \"null\": must be "), 0u);
  EXPECT_NE(options.refusal("stop_strings", "[\"\"]"), "");
  const int32_t id = 1;
  mote_generation* generation = nullptr;
  const auto begin = [&] { return mote_generation_begin(session_, &id, 1, options, &generation, &error_); };
  std::string many = R"({"stop_strings": ["a")";
  for (int i = 0; i < 64; ++i) many += ", \"a\"";
  for (const std::string& json :
       {std::string(R"({"stop_token_ids": [19]})"),
        R"({"stop_token_ids": null, "stop_strings": [")" + std::string(5000, 'a') + "\"]}", many + "]}"}) {
    options.set(json);
    EXPECT_EQ(begin(), MOTE_ERROR_INVALID_ARGUMENT) << json;
  }
  EXPECT_STREQ(error_.message, "65 stop strings: at most 64 are accepted");
  EXPECT_EQ(generation, nullptr);
}

TEST_F(CApi, a_generation_ends_at_a_stop_token_or_is_cancelled) {
  const int32_t id = 1;
  const GivenOptions options;
  EXPECT_NE(options.values(model_).find("\"max_time\": 0,"), std::string::npos);
  mote_generation* generation = nullptr;
  ASSERT_EQ(mote_generation_begin(session_, &id, 1, options, &generation, &error_), MOTE_OK);
  auto piece = sized<mote_piece>();
  ASSERT_EQ(mote_generation_next(generation, &piece, &error_), MOTE_OK);
  const int32_t stop = piece.id;
  mote_generation_cancel(nullptr);
  mote_generation_cancel(generation);
  ASSERT_EQ(mote_generation_next(generation, &piece, &error_), MOTE_OK);
  EXPECT_EQ(piece.finish_reason, MOTE_FINISH_CANCELLED);
  mote_generation_end(generation);
  ASSERT_EQ(mote_session_reset(session_, &error_), MOTE_OK);
  options.set("{\"stop_token_ids\": [" + std::to_string(stop) + "]}");
  ASSERT_EQ(mote_generation_begin(session_, &id, 1, options, &generation, &error_), MOTE_OK);
  ASSERT_EQ(mote_generation_next(generation, &piece, &error_), MOTE_OK);
  EXPECT_EQ(piece.finish_reason, MOTE_FINISH_STOP_TOKEN);
  EXPECT_STREQ(piece.text, "");
  mote_generation_end(generation);
}

TEST_F(CApi, bad_cpus_and_priorities_are_named) {
  const GivenOptions options(R"({"cpus": "4095"})");
  mote_session* session = nullptr;
  EXPECT_EQ(mote_session_open(model_, options, &session, &error_), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(error_.message, "cpus"), nullptr) << error_.message;
  EXPECT_EQ(session, nullptr);
  EXPECT_EQ(options.refusal("priority", "highest"), "priority = \"highest\": must be one of normal, low, high");
  EXPECT_NE(options.refusal("priority", "3"), "");
}

TEST_F(CApi, profiles_between_start_and_stop) {
  char* trace = nullptr;
  EXPECT_EQ(mote_session_stop_profile(session_, &trace, &error_), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(trace, nullptr);
  ASSERT_EQ(mote_session_start_profile(session_, &error_), MOTE_OK);
  ASSERT_EQ(mote_session_decode(session_, 1, nullptr, &error_), MOTE_OK);
  ASSERT_EQ(mote_session_stop_profile(session_, &trace, &error_), MOTE_OK);
  for (const char* expected : {"\"traceEvents\"", "\"mote.attention\"", "\"decode\"", "\"macs\""}) {
    EXPECT_NE(std::strstr(trace, expected), nullptr) << expected;
  }
  mote_string_free(trace);
}

// What a sink has seen, and when it is to end the call.
struct SeenValues {
  std::vector<int32_t> instructions;
  size_t bytes = 0;
  size_t most = SIZE_MAX;
  int releases = 0;

  static int32_t take(void* user_data, const mote_value* value) {
    auto& seen = *static_cast<SeenValues*>(user_data);
    seen.instructions.push_back(value->instruction);
    int64_t elements = 1;
    for (size_t i = 0; i < value->rank; ++i) elements *= value->shape[i];
    if (std::strcmp(value->dtype, "float32") == 0) { EXPECT_EQ(value->bytes, static_cast<size_t>(elements) * 4); }
    seen.bytes += value->bytes;
    return seen.instructions.size() >= seen.most ? 1 : 0;
  }
  static void release(void* user_data) { ++static_cast<SeenValues*>(user_data)->releases; }
};

TEST_F(CApi, gives_what_instructions_compute_and_lets_go_of_the_sink) {
  SeenValues seen;
  ASSERT_EQ(mote_session_set_value_sink(session_, &SeenValues::take, &seen, &SeenValues::release, &error_), MOTE_OK);
  ASSERT_EQ(mote_session_decode(session_, 1, nullptr, &error_), MOTE_OK);
  const size_t count = seen.instructions.size();
  EXPECT_GT(count, 3u);
  EXPECT_TRUE(std::is_sorted(seen.instructions.begin(), seen.instructions.end()));
  EXPECT_GT(seen.bytes, 0u);

  seen.most = count + 2;
  EXPECT_EQ(mote_session_decode(session_, 1, nullptr, &error_), MOTE_ERROR_CANCELLED);
  EXPECT_EQ(seen.instructions.size(), count + 2);
  EXPECT_EQ(mote_session_position(session_), 1);
  EXPECT_EQ(seen.releases, 0);
  ASSERT_EQ(mote_session_set_value_sink(session_, nullptr, nullptr, nullptr, &error_), MOTE_OK);
  EXPECT_EQ(seen.releases, 1);
  ASSERT_EQ(mote_session_decode(session_, 1, nullptr, &error_), MOTE_OK);
  EXPECT_EQ(seen.instructions.size(), count + 2);

  EXPECT_EQ(mote_session_set_value_sink(nullptr, &SeenValues::take, &seen, &SeenValues::release, &error_),
            MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(seen.releases, 2);
}

TEST_F(CApi, lists_kernels) {
  char* json = nullptr;
  ASSERT_EQ(mote_describe_kernels(&json, &error_), MOTE_OK) << error_.message;
  for (const char* expected : {"\"linear.codes\"", "\"choices\"", "\"int4 group 32\"", "\"cpu_features\""}) {
    EXPECT_NE(std::strstr(json, expected), nullptr) << expected;
  }
  mote_string_free(json);
}

TEST_F(CApi, limits_refuse_impossible_thread_counts) {
  auto limits = sized<mote_limits>();
  EXPECT_EQ(mote_measure_limits(-1, &limits, &error_), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(mote_measure_limits(257, &limits, &error_), MOTE_ERROR_INVALID_ARGUMENT);
}

TEST_F(CApi, advises_on_a_file) {
  auto advice = sized<mote_advice>();
  EXPECT_EQ(mote_advise(nullptr, nullptr, 1, 1, &advice, &error_), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(mote_advise(file_.path().c_str(), nullptr, 1, 1, nullptr, &error_), MOTE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(mote_advise("/nowhere.mote", nullptr, 1, 1, &advice, &error_), MOTE_ERROR_FILE_NOT_FOUND);
  EXPECT_EQ(mote_advise_memory("it", nullptr, 1, nullptr, 1, 1, &advice, &error_), MOTE_ERROR_INVALID_ARGUMENT);
  ASSERT_EQ(mote_advise(file_.path().c_str(), nullptr, 2, 2, &advice, &error_), MOTE_OK) << error_.message;
  EXPECT_GT(advice.decode_tokens_per_second, 0);
}

TEST_F(CApi, generates_after_the_handles_of_session_and_model_are_closed) {
  const int32_t prompt[] = {1, 2};
  const GivenOptions options(R"({"max_new_tokens": 3, "ignore_eos": true})");
  mote_generation* generation = nullptr;
  ASSERT_EQ(mote_generation_begin(session_, prompt, 2, options, &generation, &error_), MOTE_OK) << error_.message;
  mote_session_close(session_);
  session_ = nullptr;
  mote_model_close(model_);
  model_ = nullptr;
  auto piece = sized<mote_piece>();
  int count = 0;
  do {
    ASSERT_EQ(mote_generation_next(generation, &piece, &error_), MOTE_OK) << error_.message;
    EXPECT_EQ(piece.text[piece.text_bytes], '\0');
    ++count;
  } while (piece.finished == 0 && count < 10);
  EXPECT_EQ(count, 3);
  EXPECT_EQ(piece.finish_reason, MOTE_FINISH_LENGTH);
  auto statistics = sized<mote_statistics>();
  ASSERT_EQ(mote_generation_statistics(generation, &statistics, &error_), MOTE_OK);
  EXPECT_EQ(statistics.prompt_tokens, 2);
  EXPECT_EQ(statistics.generated_tokens, 3);
  EXPECT_EQ(statistics.finish_reason, MOTE_FINISH_LENGTH);
  EXPECT_GT(statistics.peak_rss_bytes, 0u);
  mote_generation_end(generation);
}

TEST_F(CApi, tokenizes_with_any_capacity) {
  size_t count = 0;
  ASSERT_EQ(mote_tokenize(model_, "ab d", 4, 1, 1, nullptr, 0, &count, &error_), MOTE_OK);
  ASSERT_EQ(count, 3u);
  int32_t ids[4] = {-7, -7, -7, -7};
  ASSERT_EQ(mote_tokenize(model_, "ab d", 4, 1, 1, ids, 2, &count, &error_), MOTE_OK);
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(ids[0], 9);
  EXPECT_EQ(ids[2], -7);
  char* text = nullptr;
  size_t text_bytes = 0;
  const int32_t all[] = {9, 5, 4, 12345};
  ASSERT_EQ(mote_detokenize(model_, all, 4, 0, &text, &text_bytes, &error_), MOTE_OK);
  EXPECT_STREQ(text, "ab d");
  EXPECT_EQ(text_bytes, 4u);
  mote_string_free(text);
  ASSERT_EQ(mote_model_chat_template(model_, &text, &text_bytes, &error_), MOTE_OK);
  EXPECT_EQ(text_bytes, std::strlen(text));
  mote_string_free(text);
}

TEST_F(CApi, describes_the_file) {
  char* json = nullptr;
  ASSERT_EQ(mote_model_describe(model_, &json, &error_), MOTE_OK);
  for (const char* expected :
       {"\"prefill\"", "\"mote.attention\"", "\"bytes_per_position\"", "\"byte-level BPE\"", "\"test/tiny\""}) {
    EXPECT_NE(std::strstr(json, expected), nullptr) << expected;
  }
  mote_string_free(json);
  EXPECT_EQ(mote_model_release_pages(model_, &error_), MOTE_OK);
  EXPECT_EQ(mote_model_check_segments(model_, &error_), MOTE_OK) << "pages are read again";
  EXPECT_EQ(mote_describe_file("/nowhere.mote", &json, &error_), MOTE_ERROR_FILE_NOT_FOUND);
  EXPECT_NE(std::strstr(error_.message, "/nowhere.mote"), nullptr);
}

TEST(CApiVersion, is_seen_from_c) { EXPECT_STREQ(version_seen_from_c(), mote_version()); }

}  // namespace
}  // namespace mote
