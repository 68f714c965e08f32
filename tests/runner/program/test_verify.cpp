#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/runner/program/refusal.h"

namespace mote {
namespace {

using test::constant;
using test::Edit;
using test::expect_refused;
using test::kDecode;
using test::kPrefill;
using test::kVerify;
using test::refusal;
using test::tokens;

// Values of each method of sum_model: the inputs, both weights, and what each instruction computes.
constexpr size_t kIds = 0;
constexpr size_t kEmbeddingWeight = 2;
constexpr size_t kEmbedded = 4;
constexpr size_t kSum = 5;
constexpr size_t kRow = 6;

fb::ValueT& value(fb::ProgramT& program, size_t method, size_t index) {
  return *program.methods[method]->values[index];
}
fb::InstructionT& instruction(fb::ProgramT& program, size_t method, size_t index) {
  return *program.methods[method]->instructions[index];
}

TEST(Verify, accepts_a_whole_program) {
  EXPECT_EQ(refusal([](fb::ProgramT&) {}), "");
}

TEST(Verify, gives_the_bytes_of_segments_and_weights) {
  test::ProgramBuilder builder = test::sum_model();
  builder.tokenizer = "{\"model\": {}}";
  const auto verified = verify(*map_bytes("test.mote", builder.build()));
  ASSERT_TRUE(verified.ok()) << verified.status().message();
  const auto tokenizer = verified->segment(fb::SegmentKind::tokenizer);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(tokenizer.data()), tokenizer.size()), builder.tokenizer);
  EXPECT_TRUE(verified->segment(fb::SegmentKind::chat_template).empty());
  EXPECT_EQ(verified->weight(1).size(), static_cast<size_t>(test::kVocabSize * test::kDim) * sizeof(float));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(verified->weight(1).data()) % 64, 0u);
}

TEST(Verify, check_segments_notices_a_changed_weight) {
  test::Bytes file = test::sum_model().build();
  EXPECT_TRUE(check_segments(*verify(*map_bytes("test.mote", file))).ok());
  file.back() ^= std::byte{1};
  const Status status = check_segments(*verify(*map_bytes("test.mote", file)));
  EXPECT_EQ(status.code(), Code::kInvalidProgram);
  EXPECT_NE(status.message().find("segments[0] (weights): crc32"), std::string::npos) << status.message();
}

TEST(Verify, rejects_what_is_no_flatbuffer) {
  test::ProgramBuilder builder = test::sum_model();
  test::Bytes file = builder.build();
  test::Bytes garbage(1000, std::byte{0x7f});
  ASSERT_TRUE(test::replace_program(file, garbage, builder.program.segments[0]->offset));
  EXPECT_NE(verify(*map_bytes("test.mote", file)).status().message().find("not a well-formed flatbuffer"),
            std::string::npos);
}

TEST(Verify, rejects_vectors_of_sizes_that_are_not_aligned) {
  test::ProgramBuilder builder = test::sum_model();
  test::Bytes file = builder.build();
  const auto* program = fb::GetProgram(file.data() + 64);
  // Points the table at a length 4 bytes later: the low half of the first Dim, which is 0 tokens and so an empty shape.
  const fb::Value* changed = program->methods()->Get(0)->values()->Get(kSum);
  const auto field = static_cast<size_t>(
      reinterpret_cast<const flatbuffers::Table*>(changed)->GetOptionalFieldOffset(fb::Value::VT_SHAPE));
  const size_t at = static_cast<size_t>(reinterpret_cast<const std::byte*>(changed) - file.data()) + field;
  test::put<uint32_t>(file, at, test::get<uint32_t>(file, at) + 4);
  test::write_header(file, test::get<uint64_t>(file, 16));
  const Status status = verify(*map_bytes("test.mote", file)).status();
  EXPECT_NE(status.message().find("methods[0].values[5].shape is not aligned to 8 bytes"), std::string::npos)
      << status.message();
}

// Segments

TEST(Verify, rejects_a_segment_that_is_not_page_aligned) {
  expect_refused([](auto& p) { p.segments[0]->offset += 64; }, "segments[0] offset = ");
}
TEST(Verify, rejects_a_segment_that_overlaps_the_one_before) {
  expect_refused([](auto& p) { p.segments[1]->offset = p.segments[0]->offset; }, "segments[1] = ");
}
TEST(Verify, rejects_a_segment_inside_the_program) {
  expect_refused([](auto& p) { p.segments[0]->offset = 0; }, "segments[0] = 0 + ");
}
TEST(Verify, rejects_a_segment_past_the_end_of_the_file) {
  expect_refused([](auto& p) { p.segments[2]->bytes += 1; }, "segments[2] = ");
}
TEST(Verify, rejects_a_segment_whose_end_wraps) {
  expect_refused([](auto& p) { p.segments[0]->bytes = UINT64_MAX; }, "segments[0] = ");
  expect_refused([](auto& p) { p.segments[0]->offset = UINT64_MAX - 4095; }, "segments[0] offset");
}
TEST(Verify, rejects_a_tail_that_no_segment_covers) {
  expect_refused([](auto& p) { p.segments[2]->bytes -= 1; }, "segments end at byte");
}
TEST(Verify, rejects_a_gap_of_a_page) {
  expect_refused([](auto& p) { p.segments.erase(p.segments.begin() + 1); }, "segments[1] is preceded by a gap");
}
TEST(Verify, rejects_padding_that_is_not_zero) {
  test::ProgramBuilder builder = test::sum_model();
  test::Bytes file = builder.build();
  file[builder.program.segments[0]->offset - 1] = std::byte{1};
  EXPECT_NE(verify(*map_bytes("test.mote", file)).status().message().find("padding that is not zero"),
            std::string::npos);
}
TEST(Verify, rejects_a_segment_kind_that_does_not_exist) {
  expect_refused([](auto& p) { p.segments[1]->kind = static_cast<fb::SegmentKind>(5); }, "segments[1] kind = 5");
}
TEST(Verify, rejects_the_rest_of_an_asset_that_is_not_there) {
  expect_refused([](auto& p) { p.segments[1]->kind = fb::SegmentKind::asset_rest; },
                 "asset must be there with a segment asset_rest");
}
TEST(Verify, rejects_a_segment_twice) {
  expect_refused([](auto& p) { p.segments[1]->kind = fb::SegmentKind::weights; },
                 "segments[1] kind = weights: is in the file twice");
}
TEST(Verify, rejects_a_chat_template_that_is_not_utf8) {
  test::ProgramBuilder builder = test::sum_model();
  builder.chat_template = "\xff";
  EXPECT_NE(verify(*map_bytes("test.mote", builder.build())).status().message().find("chat_template is not UTF-8"),
            std::string::npos);
}

// Weights

TEST(Verify, rejects_a_weight_outside_its_segment) {
  expect_refused([](auto& p) { p.weights[1]->offset += 64; }, "weights[1] = ");
  expect_refused([](auto& p) { p.weights[1]->offset = UINT64_MAX - 63; }, "weights[1] offset = ");
}
TEST(Verify, rejects_a_weight_that_is_not_aligned) {
  expect_refused([](auto& p) { p.weights[0]->offset = 4; }, "weights[0] offset = 4: must be a multiple of 64");
}
TEST(Verify, rejects_weight_bytes_other_than_its_shape_needs) {
  expect_refused([](auto& p) { p.weights[0]->bytes -= 4; },
                 "weights[0] (embed_tokens.weight) bytes = 172: shape, dtype, bits and group_size need 176");
  expect_refused([](auto& p) { p.weights[0]->dtype = fb::DType::int64; },
                 "weights[0] (embed_tokens.weight) bytes = 176");
}
TEST(Verify, rejects_a_weight_shape_product_that_overflows) {
  expect_refused([](auto& p) { p.weights[0]->shape = {int64_t{1} << 32, int64_t{1} << 32}; },
                 "weights[0] shape has more than 2^40 elements");
  expect_refused([](auto& p) { p.weights[0]->shape = {0, INT64_MAX, INT64_MAX}; },
                 "weights[0] shape has more than 2^40 elements");
}
TEST(Verify, rejects_a_negative_weight_size) {
  expect_refused([](auto& p) { p.weights[0]->shape = {-11, -4}; }, "weights[0].shape[0] = -11");
}
TEST(Verify, rejects_a_weight_of_rank_nine) {
  expect_refused([](auto& p) { p.weights[0]->shape.assign(9, 1); }, "weights[0] shape has 9 dimensions");
}
TEST(Verify, rejects_a_weight_dtype_that_does_not_exist) {
  expect_refused([](auto& p) { p.weights[0]->dtype = static_cast<fb::DType>(8); }, "weights[0] dtype = 8");
}
TEST(Verify, rejects_weight_formats_that_do_not_exist) {
  expect_refused([](auto& p) { p.weights[0]->bits = 9; },
                 "weights[0] bits = 9, group_size = 0, scale_columns = 0, low = 0: bits: must be 0..8");
  expect_refused([](auto& p) { p.weights[0]->group_size = 32; }, "weights[0] group_size = 32: must be 0");
  expect_refused(
      [](auto& p) {
        p.weights[0]->bits = 4;
        p.weights[0]->group_size = 0;
      },
      "weights[0] bits = 4, group_size = 0, scale_columns = 0, low = 0: group_size: must be 32, 64, 128 or 256");
  expect_refused(
      [](auto& p) {
        p.weights[0]->bits = 4;
        p.weights[0]->group_size = 32;
      },
      "weights[0] dtype = float32: multipliers");
}
TEST(Verify, rejects_a_quantized_weight_that_is_no_matrix_of_whole_groups) {
  const auto quantize = [](fb::WeightT& weight, std::vector<int64_t> shape) {
    weight.dtype = fb::DType::int8;
    weight.bits = 4;
    weight.group_size = 32;
    weight.shape = std::move(shape);
  };
  expect_refused([&](auto& p) { quantize(*p.weights[0], {4, 40}); },
                 "weights[0] shape: quantised weights must be [N, K] or [E, N, K] with K a multiple of 32");
  expect_refused([&](auto& p) { quantize(*p.weights[0], {32}); }, "weights[0] shape: quantised weights must be [N, K]");
  expect_refused([&](auto& p) { quantize(*p.weights[0], {17, 64}); },
                 "weights[0] (embed_tokens.weight) bytes = 176: shape, dtype, bits and group_size need 1216");
}

TEST(Verify, rejects_float16_scales_that_tiles_do_not_have) {
  const auto expect = [](const auto& change, const std::string& message) {
    expect_refused(
        [&](auto& p) {
          fb::WeightT& weight = *p.weights[0];
          weight.dtype = fb::DType::int8;
          weight.bits = 4;
          weight.group_size = 32;
          weight.scale_columns = 32;
          weight.shape = {16, 64};
          change(weight);
        },
        "weights[0] " + message);
  };
  const std::string columns = "scale_columns: must be 0, 16, 32, 64, 128 or 256, and at least group_size";
  expect([](auto& w) { w.scale_columns = 48; }, "bits = 4, group_size = 32, scale_columns = 48, low = 0: " + columns);
  expect([](auto& w) { w.scale_columns = -32; }, "bits = 4, group_size = 32, scale_columns = -32, low = 0: " + columns);
  expect([](auto& w) { w.scale_columns = 16; }, "bits = 4, group_size = 32, scale_columns = 16, low = 0: " + columns);
  expect([](auto& w) { w.group_size = 8; },
         "bits = 4, group_size = 8, scale_columns = 32, low = 0: group_size: must be 16, 32, 64, 128 or 256");
  expect([](auto& w) { w.low = static_cast<fb::WeightOffset>(3); },
         "bits = 4, group_size = 32, scale_columns = 32, low = 3: offset: must be none, minimum or zero");
  expect([](auto& w) { w.bits = 8, w.low = fb::WeightOffset::minimum; },
         "bits = 8, group_size = 32, scale_columns = 32, low = 1: bits: must be 1..7 with minimums");
  expect([](auto& w) { w.codebook.assign(16, 0), w.bits = 5; },
         "bits = 5, group_size = 32, scale_columns = 32, low = 0: codebook: must be of 4 bits");
  expect([](auto& w) { w.scale_columns = 0, w.row_scales = false; },
         "bits = 4, group_size = 32, scale_columns = 0, low = 0: scale_columns: must not be 0");
  expect([](auto& w) { w.codebook.assign(15, 0); }, "codebook has 15 values: must have 16");
  expect([](auto& w) { w.scale_columns = 128; }, "shape: quantised weights must be [N, K] or [E, N, K] with K a");
  expect([](auto& w) { w.bits = 0, w.group_size = 0; }, "scale_columns = 32: must be 0 for dense weights");
  expect([](auto&) {}, "(embed_tokens.weight) bytes = 176: shape, dtype, bits and group_size need 640");
}

TEST(Verify, stacked_experts_are_padded_to_whole_tiles_each) {
  const auto refusal_of = [](size_t num_bytes) {
    test::ProgramBuilder builder = test::sum_model();
    builder.quantized_weight("experts", {3, 17, 64}, 4, 32, test::Bytes(num_bytes));
    return refusal([](fb::ProgramT&) {}, std::move(builder));
  };
  EXPECT_EQ(refusal_of(3 * 2 * (2 * 272 + 64)), "");
  EXPECT_NE(refusal_of(4 * (2 * 272 + 64)), "");  // 51 rows padded together
}

TEST(Verify, every_number_of_bits_has_tiles_of_its_own_size) {
  const auto refusal_of = [](int bits, size_t num_bytes) {
    test::ProgramBuilder builder = test::sum_model();
    builder.quantized_weight("w", {17, 64}, static_cast<uint8_t>(bits), 32, test::Bytes(num_bytes));
    return refusal([](fb::ProgramT&) {}, std::move(builder));
  };
  for (int bits = 1; bits <= 8; ++bits) {
    const size_t bytes = 2 * (2 * (64 * static_cast<size_t>(bits) + 16) + 64);
    EXPECT_EQ(refusal_of(bits, bytes), "") << bits;
    EXPECT_NE(refusal_of(bits, bytes + 64), "") << bits;
  }
}

// States, vocabulary, golden samples, text

TEST(Verify, rejects_a_state_kind_that_does_not_exist) {
  expect_refused([](auto& p) { p.states[0]->kind = static_cast<fb::StateKind>(2); }, "states[0] kind = 2");
}
TEST(Verify, rejects_a_recurrent_state_without_a_sound_shape) {
  expect_refused([](auto& p) { p.states[0]->shape = {}; }, "states[0].shape.size = 0");
  expect_refused([](auto& p) { p.states[0]->shape = {-4}; }, "states[0].shape[0].size = -4");
  expect_refused([](auto& p) { p.states[0]->shape = {int64_t{1} << 40, int64_t{1} << 40}; },
                 "states[0] shape has more than 2^40 elements");
}
TEST(Verify, rejects_a_cache_without_heads) {
  const auto cache = [](fb::ProgramT& p) -> fb::StateT& {
    p.states[0]->kind = fb::StateKind::kv_cache;
    p.states[0]->shape = {};
    p.states[0]->num_heads = p.states[0]->head_dim = p.states[0]->value_head_dim = 8;
    return *p.states[0];
  };
  expect_refused([&](auto& p) { cache(p).num_heads = 0; }, "states[0].num_heads = 0");
  expect_refused([&](auto& p) { cache(p).head_dim = -1; }, "states[0].head_dim = -1");
  expect_refused([&](auto& p) { cache(p).value_head_dim = 1 << 30; }, "states[0].value_head_dim = 1073741824");
  expect_refused([&](auto& p) { cache(p).window = -1; }, "states[0].window = -1");
  expect_refused([&](auto& p) { cache(p).num_sink_positions = 4; }, "states[0].num_sink_positions = 4: must be 0..0");
  expect_refused([&](auto& p) { cache(p).stride = 0; }, "states[0].stride = 0: must be 1..1048576");
  expect_refused([&](auto& p) { cache(p).window = cache(p).stride = 4; }, "states[0].stride = 4: must be 1..1");
  expect_refused([&](auto& p) { cache(p).shape = {4}; }, "states[0].shape.size = 1: must be 0..0");
}
TEST(Verify, rejects_token_ids_outside_the_vocabulary) {
  expect_refused([](auto& p) { p.vocab_size = 0; }, "vocab_size = 0");
  expect_refused([](auto& p) { p.eos_token_ids = {1, 11}; }, "eos_token_ids[1] = 11: must be 0..10");
  expect_refused([](auto& p) { p.eos_token_ids = {-1}; }, "eos_token_ids[0] = -1");
  expect_refused([](auto& p) { p.bos_token_id = 11; }, "bos_token_id = 11");
  expect_refused([](auto& p) { p.max_position_embeddings = 0; }, "max_position_embeddings = 0");
}

TEST(Verify, rejects_figures_of_a_check_that_are_no_numbers) {
  const auto check = [](auto& p) -> fb::CheckT& {
    p.check = std::make_unique<fb::CheckT>();
    p.check->mode = "full";
    p.check->median_relative_error = p.check->max_relative_error = p.check->tolerance = p.check->top1_agreement = 1;
    p.check->num_positions = 2;
    return *p.check;
  };
  expect_refused([&](auto& p) { check(p).tolerance = -1; }, "check tolerance = -1");
  expect_refused([&](auto& p) { check(p).top1_agreement = NAN; }, "check top1_agreement = nan");
  expect_refused([&](auto& p) { check(p).num_positions = -1; }, "check.num_positions = -1");
}

TEST(Verify, rejects_golden_samples_that_do_not_fit_together) {
  const auto sample = [](fb::ProgramT& p) -> fb::GoldenSampleT& {
    p.golden_samples.push_back(std::make_unique<fb::GoldenSampleT>());
    p.golden_samples[0]->prompt_ids = {1, 2};
    p.golden_samples[0]->expected_ids = {3, 4, 5};
    p.golden_samples[0]->probe_ids = {0, 10};
    p.golden_samples[0]->probe_logits.assign(6, 0.5f);
    return *p.golden_samples[0];
  };
  EXPECT_EQ(refusal([&](auto& p) { sample(p); }), "");
  expect_refused([&](auto& p) { sample(p).probe_logits.pop_back(); },
                 "golden_samples[0] has 5 probe_logits: must have 6");
  expect_refused([&](auto& p) { sample(p).prompt_ids = {}; }, "golden_samples[0].prompt_ids.size = 0");
  expect_refused([&](auto& p) { sample(p).prompt_ids = {11}; }, "golden_samples[0].prompt_ids[0] = 11");
  expect_refused([&](auto& p) { sample(p).expected_ids[2] = -1; }, "golden_samples[0].expected_ids[2] = -1");
  expect_refused([&](auto& p) { sample(p).probe_ids[1] = 99; }, "golden_samples[0].probe_ids[1] = 99");
  expect_refused([&](auto& p) { sample(p).probe_logits[1] = std::numeric_limits<float>::infinity(); },
                 "golden_samples[0].probe_logits[1]");
  expect_refused([&](auto& p) { sample(p).tolerance = -1; }, "golden_samples[0] tolerance = -1");
}
TEST(Verify, rejects_text_that_is_not_utf8_or_too_long) {
  expect_refused([](auto& p) { p.provenance->license = "ok\xc3"; }, "provenance.license is not UTF-8 at byte 2");
  expect_refused([](auto& p) { p.generation_config = std::string("{\0}", 3); }, "generation_config contains a NUL");
  expect_refused([](auto& p) { p.weights[0]->name = "\xed\xa0\x80"; }, "weights[0].name is not UTF-8");
  expect_refused([](auto& p) { p.states[0]->name = "\xff"; }, "states[0].name is not UTF-8");
  expect_refused([](auto& p) { instruction(p, 0, 0).op = std::string(257, 'a'); },
                 "methods[0].instructions[0].op has 257 bytes");
  expect_refused([](auto& p) { instruction(p, 0, 0).origin = "\xff"; },
                 "methods[0].instructions[0].origin is not UTF-8");
}

// Methods

TEST(Verify, rejects_token_ranges_that_are_empty) {
  expect_refused([](auto& p) { p.methods[0]->min_tokens = 0; }, "methods[0].min_tokens = 0");
  expect_refused([](auto& p) { p.methods[0]->max_tokens = 0; }, "methods[0].max_tokens = 0");
}
TEST(Verify, rejects_arenas_that_overflow_or_are_not_aligned) {
  expect_refused([](auto& p) { p.methods[0]->per_token_bytes = uint64_t{1} << 62; }, "methods[0] per_token_bytes");
  expect_refused([](auto& p) { p.methods[0]->fixed_bytes = UINT64_MAX - 63; }, "methods[0] per_token_bytes");
  expect_refused([](auto& p) { p.methods[0]->fixed_bytes += 8; }, "methods[0] per_token_bytes");
}
TEST(Verify, rejects_a_program_without_a_method_that_the_runner_calls) {
  expect_refused([](auto& p) { p.methods[kVerify]->name = "other"; }, "methods: must have one named verify");
  expect_refused([](auto& p) { p.methods.erase(p.methods.begin()); }, "methods: must have one named prefill");
}
TEST(Verify, rejects_two_methods_of_one_name) {
  expect_refused([](auto& p) { p.methods[kVerify]->name = "decode"; }, "methods[2] name = decode");
}
TEST(Verify, rejects_inputs_other_than_ids_and_positions) {
  expect_refused([](auto& p) { p.methods[0]->input_names[1] = "positions"; },
                 "methods[0].input_names[1] = positions: must be position_ids");
  expect_refused([](auto& p) { p.methods[0]->input_names.pop_back(); }, "methods[0] has 2 inputs and 1 input_names");
  expect_refused([](auto& p) { value(p, kPrefill, kIds).dtype = fb::DType::float32; },
                 "methods[0].inputs[0] (input_ids): must be int64 [1, T]");
  expect_refused([](auto& p) { value(p, kPrefill, kIds).shape = {constant(1), constant(1)}; },
                 "methods[0].inputs[0] (input_ids): must be int64 [1, T]");
  expect_refused([](auto& p) { p.methods[0]->inputs[1] = kIds; }, "methods[0].inputs[1] = 0: is an input twice");
  expect_refused([](auto& p) { p.methods[0]->inputs[1] = kEmbedded; },
                 "methods[0].inputs[1] = 4: must be the index of a value of kind input");
  expect_refused([](auto& p) { value(p, kPrefill, kEmbedded).kind = fb::ValueKind::input; },
                 "methods[0].values[4] kind = input: must be listed");
}
TEST(Verify, rejects_outputs_other_than_logits) {
  expect_refused([](auto& p) { p.vocab_size = 12; }, "methods[0].outputs[0] must be logits, float32 [1, 1, 12]");
  expect_refused(
      [](auto& p) {
        p.methods[kVerify]->name = "prefill";
        p.methods[kPrefill]->name = "verify";
      },
      "methods[0].outputs[0] must be logits, float32 [1, T, 11]");
  expect_refused([](auto& p) { p.methods[0]->outputs = {}; }, "methods[0] has 2 inputs and 0 outputs");
  expect_refused([](auto& p) { p.methods[0]->outputs = {99}; }, "methods[0].outputs[0] = 99");
  expect_refused([](auto& p) { p.methods[0]->outputs = {kEmbeddingWeight}; },
                 "methods[0].outputs[0] = 2: must be the index of a value of kind activation");
}
TEST(Verify, rejects_a_head_for_multi_token_prediction_that_reads_or_gives_something_else) {
  const auto add = [](auto& p, ptrdiff_t place) {
    auto head = std::make_unique<fb::MethodT>(*p.methods[kPrefill]);
    head->name = "mtp";
    p.methods.insert(p.methods.begin() + place, std::move(head));
  };
  expect_refused([&](auto& p) { add(p, 3); },
                 "methods[0] has 2 inputs and 1 outputs: must have input_ids, position_ids and logits, hidden states");
  expect_refused([&](auto& p) { add(p, 0); },
                 "methods[0] has 2 inputs and 1 outputs: must have input_ids, position_ids, hidden_states and logits, "
                 "hidden states");
}
TEST(Verify, rejects_a_head_that_changes_states_of_other_methods) {
  // Attends to `state`, with keys or without, in a head of sum_model, whose methods share states[0].
  const auto refusal_with = [](std::vector<std::pair<int64_t, bool>> states, std::string op = "mote.attention",
                               int32_t window = 0) {
    test::ProgramBuilder builder = test::sum_model();
    for (auto& method : builder.program.methods) method->outputs.push_back(static_cast<int32_t>(kEmbedded));
    builder.kv_cache(1, 1, window);
    test::MethodBuilder make = builder.method("mtp");
    make.input("input_ids", fb::DType::int64, {constant(1), tokens()});
    const int32_t positions = make.input("position_ids", fb::DType::int64, {constant(1), tokens()});
    const int32_t hidden =
        make.input("hidden_states", fb::DType::float32, {constant(1), tokens(), constant(test::kDim)});
    for (const auto& [state, has_keys] : states) {
      const int32_t out = make.activation({constant(1), tokens(), constant(test::kDim)});
      make.emit(op, {hidden, has_keys ? hidden : -1, has_keys ? hidden : -1, positions}, out,
                test::integer_attribute("state", state));
    }
    const int32_t logits = make.activation({constant(1), constant(1), constant(test::kVocabSize)});
    const int32_t state = make.activation({constant(1), constant(1), constant(test::kDim)});
    make.emit_all("test.head", {hidden}, {logits, state});
    builder.program.methods.back()->outputs = {logits, state};
    return test::refusal_of(builder.build());
  };
  EXPECT_EQ(refusal_with({{1, true}}), "");
  EXPECT_EQ(refusal_with({{0, false}}), "");
  const std::string changes =
      "mtp: changes states[0], model.layers.0: must be used by no other method, and prefill does";
  EXPECT_NE(refusal_with({{0, true}}).find(changes), std::string::npos) << refusal_with({{0, true}});
  EXPECT_NE(refusal_with({{0, false}}, "test.running_sum").find(changes), std::string::npos);
  EXPECT_NE(refusal_with({{1, true}}, "mote.attention", 4)
                .find("mtp: uses states[1], model.layers.1: must be a KV cache without a window"),
            std::string::npos);
  EXPECT_NE(refusal_with({{0, false}, {1, true}}).find("uses states of its own and those of other methods"),
            std::string::npos);
}
TEST(Verify, rejects_heads_that_do_not_follow_each_other) {
  // A head that attends to a state, if it is not negative, and gives hidden states of every position or of the last.
  struct Head {
    const char* name;
    int64_t state;
    bool of_every_position;
  };
  const auto refusal_with = [](const std::vector<Head>& heads) {
    test::ProgramBuilder builder = test::sum_model();
    for (auto& method : builder.program.methods) method->outputs.push_back(static_cast<int32_t>(kEmbedded));
    builder.kv_cache(1, 1);
    for (const Head& head : heads) {
      test::MethodBuilder make = builder.method(head.name);
      const std::vector<fb::Dim> rows{constant(1), tokens(), constant(test::kDim)};
      make.input("input_ids", fb::DType::int64, {constant(1), tokens()});
      const int32_t positions = make.input("position_ids", fb::DType::int64, {constant(1), tokens()});
      const int32_t hidden = make.input("hidden_states", fb::DType::float32, rows);
      const int32_t out = head.state < 0 ? hidden : make.activation(rows);
      if (head.state >= 0)
        make.emit("mote.attention", {hidden, hidden, hidden, positions}, out,
                  test::integer_attribute("state", head.state));
      const int32_t logits = make.activation({constant(1), constant(1), constant(test::kVocabSize)});
      const int32_t last = make.activation({constant(1), constant(1), constant(test::kDim)});
      make.emit_all("test.head", {out}, {logits, last});
      builder.program.methods.back()->outputs = {logits, head.of_every_position ? out : last};
    }
    return test::refusal_of(builder.build());
  };
  EXPECT_EQ(refusal_with({{"mtp", 1, true}, {"mtp_2", -1, false}}), "");
  const auto refuses = [&](const std::vector<Head>& heads, const std::string& expected) {
    EXPECT_NE(refusal_with(heads).find(expected), std::string::npos) << refusal_with(heads);
  };
  refuses({{"mtp", 1, false}, {"mtp_2", -1, false}}, "outputs[1] must be hidden states, float32 [1, T, ");
  refuses({{"mtp", 1, true}}, "outputs[1] must be hidden states, float32 [1, 1, ");
  refuses({{"mtp", 1, true}, {"mtp_2", 1, false}}, "mtp: uses states[1], model.layers.1: must be used by no other");
  refuses({{"mtp", 1, false}, {"mtp_3", -1, false}}, "mtp_3: must follow mtp_2, which the target cpu lacks");
}
TEST(Verify, rejects_an_output_that_nothing_computes) {
  expect_refused([](auto& p) { p.methods[0]->instructions.pop_back(); },
                 "methods[0].outputs[0] = 7: no instruction computes this value");
}

// Values

TEST(Verify, rejects_enums_of_values_that_do_not_exist) {
  expect_refused([](auto& p) { value(p, 0, kSum).kind = static_cast<fb::ValueKind>(3); },
                 "methods[0].values[5] kind = 3");
  expect_refused([](auto& p) { value(p, 0, kSum).dtype = static_cast<fb::DType>(200); },
                 "methods[0].values[5] dtype = 200");
  expect_refused([](auto& p) { value(p, 0, kSum).arena = static_cast<fb::Arena>(2); },
                 "methods[0].values[5] arena = 2");
}
TEST(Verify, rejects_a_value_of_rank_nine) {
  expect_refused([](auto& p) { value(p, 0, kSum).shape.assign(9, constant(1)); },
                 "methods[0].values[5] shape has 9 dimensions");
}
TEST(Verify, rejects_a_negative_size) {
  expect_refused([](auto& p) { value(p, 0, kSum).shape[1] = constant(-3); },
                 "methods[0].values[5].shape[1] = -3: must be 0..1099511627776");
}
TEST(Verify, rejects_a_size_that_is_negative_for_some_tokens) {
  expect_refused([](auto& p) { value(p, 0, kSum).shape[1] = {1, -2}; },
                 "methods[0].values[5].shape[1] = 1 * T + -2: must be 0..1099511627776, also for T = 1");
  expect_refused([](auto& p) { value(p, 0, kSum).shape[1] = {-1, 100}; },
                 "methods[0].values[5].shape[1] = -1 * T + 100");
}
TEST(Verify, rejects_a_size_that_overflows) {
  expect_refused([](auto& p) { value(p, 0, kSum).shape[1] = {INT64_MAX, INT64_MAX}; }, "methods[0].values[5].shape[1]");
  expect_refused([](auto& p) { value(p, 0, kSum).shape[1] = {INT64_MIN, INT64_MIN}; }, "methods[0].values[5].shape[1]");
}
TEST(Verify, rejects_shape_product_overflow) {
  const test::Shape huge = {constant(int64_t{1} << 32), constant(int64_t{1} << 32)};
  expect_refused([&](auto& p) { value(p, 0, kSum).shape = huge; },
                 "methods[0].values[5] shape has more than 2^40 elements");
  expect_refused([&](auto& p) { value(p, 0, kSum).shape = {constant(0), huge[0], huge[1]}; },
                 "methods[0].values[5] shape has more than 2^40 elements");
}
TEST(Verify, rejects_a_value_larger_than_its_place) {
  expect_refused([](auto& p) { value(p, 0, kSum).bytes = 0; },
                 "methods[0].values[5].bytes = 0: the value needs 16 bytes for T = 1, the plan reserves 0");
  expect_refused([](auto& p) { value(p, 0, kSum).shape.push_back(constant(5)); },
                 "methods[0].values[5].bytes = 64: the value needs 80");
  expect_refused([](auto& p) { value(p, 0, kSum).shape = {tokens(), tokens()}; },
                 "methods[0].values[5].bytes = 64: the value needs 4398046511104 bytes for T = 1048576");
}
TEST(Verify, rejects_a_place_outside_of_the_arena) {
  expect_refused([](auto& p) { value(p, 0, kSum).offset += 64; },
                 "methods[0].values[5] = 256 + 64 bytes: must lie in its arena (per_token_bytes = 256)");
  expect_refused([](auto& p) { value(p, 0, kSum).offset = UINT64_MAX - 63; }, "methods[0].values[5].offset");
  expect_refused([](auto& p) { value(p, 0, kSum).bytes = uint64_t{1} << 62; }, "methods[0].values[5] = 192 + ");
  expect_refused([](auto& p) { value(p, 0, kSum).arena = fb::Arena::fixed; },
                 "methods[0].values[5] = 192 + 64 bytes: must lie in its arena (fixed_bytes = 64)");
}
TEST(Verify, rejects_a_place_that_is_not_aligned) {
  expect_refused([](auto& p) { value(p, 0, kSum).offset -= 4; }, "methods[0].values[5].offset = 188");
  expect_refused([](auto& p) { value(p, 0, kSum).bytes -= 4; }, "methods[0].values[5].bytes = 60");
}
TEST(Verify, rejects_values_that_share_bytes_while_both_live) {
  expect_refused(
      [](auto& p) { value(p, 0, kSum).offset = value(p, 0, kEmbedded).offset; },
      "methods[0].values[5] shares bytes 128..192 of arena per_token with values[4], which lives at the same time");
  // position_ids is read by nobody, so its place is free after the start; input_ids is still read.
  expect_refused([](auto& p) { value(p, 0, kEmbedded).offset = value(p, 0, kIds).offset; },
                 "methods[0].values[4] shares bytes 0..64");
}
TEST(Verify, accepts_values_that_share_bytes_one_after_the_other) {
  EXPECT_EQ(refusal([](auto& p) { value(p, 0, kSum).offset = value(p, 0, kIds).offset; }), "");
}
TEST(Verify, a_view_keeps_its_storage_alive) {
  // In verify the logits may take the place of what was embedded, but not in prefill when the row is a view of it.
  const Edit reuse = [](fb::ProgramT& p) {
    fb::ValueT& logits = value(p, kPrefill, 7);
    logits.arena = fb::Arena::per_token;
    logits.offset = value(p, kPrefill, kSum).offset;
  };
  expect_refused(reuse, "methods[0].values[7] shares bytes 192..256 of arena per_token with values[5]");
}
TEST(Verify, rejects_a_method_output_whose_place_is_used_again) {
  expect_refused(
      [](auto& p) {
        auto& method = *p.methods[kVerify];
        auto again = std::make_unique<fb::InstructionT>(*method.instructions[1]);
        auto other = std::make_unique<fb::ValueT>(*method.values[kSum]);
        other->offset = method.values[6]->offset;
        method.values.push_back(std::move(other));
        again->outputs = {7};
        again->attributes.clear();
        method.instructions.push_back(std::move(again));
      },
      "methods[2].values[7] shares bytes");
}
TEST(Verify, rejects_weight_values_that_differ_from_their_weight) {
  expect_refused([](auto& p) { value(p, 0, kEmbeddingWeight).weight = 2; },
                 "methods[0].values[2].weight = 2: must be 0..1");
  expect_refused([](auto& p) { value(p, 0, kEmbeddingWeight).weight = -1; }, "methods[0].values[2].weight = -1");
  expect_refused([](auto& p) { value(p, 0, kEmbeddingWeight).dtype = fb::DType::int32; },
                 "methods[0].values[2].dtype = int32: weight embed_tokens.weight has float32");
  expect_refused([](auto& p) { value(p, 0, kEmbeddingWeight).shape[0] = constant(12); },
                 "methods[0].values[2] shape: must be that of weight embed_tokens.weight");
  expect_refused([](auto& p) { value(p, 0, kEmbeddingWeight).shape[0] = tokens(11); }, "methods[0].values[2] shape");
  expect_refused([](auto& p) { value(p, 0, kEmbeddingWeight).alias_of = 0; }, "methods[0].values[2] alias_of = 0");
  expect_refused([](auto& p) { value(p, 0, kSum).weight = 0; }, "methods[0].values[5] weight = 0: must be -1");
}

// Views

TEST(Verify, rejects_alias_cycles_and_later_values) {
  expect_refused([](auto& p) { value(p, 0, kRow).alias_of = kRow; },
                 "methods[0].values[6].alias_of = 6: must be -1 or a value before");
  expect_refused([](auto& p) { value(p, 0, kRow).alias_of = 7; }, "methods[0].values[6].alias_of = 7");
  expect_refused([](auto& p) { value(p, 0, kRow).alias_of = -2; }, "methods[0].values[6].alias_of = -2");
}
TEST(Verify, rejects_an_alias_of_what_the_instruction_does_not_read) {
  expect_refused([](auto& p) { value(p, 0, kRow).alias_of = kEmbedded; },
                 "methods[0].instructions[2].outputs[0] = 6: alias_of = 4: must be the storage of inputs[0]");
}
TEST(Verify, rejects_a_view_of_another_dtype) {
  expect_refused([](auto& p) { value(p, 0, kRow).dtype = fb::DType::int64; },
                 "methods[0].values[6].dtype = int64: a view has its input's, float32");
}
TEST(Verify, rejects_an_input_that_is_a_view) {
  expect_refused([](auto& p) { value(p, 0, 1).alias_of = 0; },
                 "methods[0].values[1] alias_of = 0: must be -1 for an input");
}
TEST(Verify, rejects_a_view_of_a_quantized_weight) {
  test::ProgramBuilder builder = test::sum_model();
  builder.quantized_weight("q", {16, 32}, 4, 32, test::Bytes(336));
  const std::string message = refusal(
      [](fb::ProgramT& p) {
        fb::ValueT& weight = value(p, 0, kEmbeddingWeight);
        weight.weight = 2;
        weight.dtype = fb::DType::int8;
        weight.shape = {constant(16), constant(32)};
        value(p, 0, kRow).alias_of = kEmbeddingWeight;
      },
      std::move(builder));
  EXPECT_NE(message.find("methods[0].values[6].alias_of = 2: quantised weights have no views"), std::string::npos)
      << message;
}

// Instructions

TEST(Verify, rejects_operands_that_do_not_exist) {
  expect_refused([](auto& p) { instruction(p, 0, 0).inputs[0] = 8; },
                 "methods[0].instructions[0].inputs[0] = 8: must be -1 or 0..7");
  expect_refused([](auto& p) { instruction(p, 0, 0).inputs[0] = -2; }, "methods[0].instructions[0].inputs[0] = -2");
  expect_refused([](auto& p) { instruction(p, 0, 0).outputs[0] = -1; }, "methods[0].instructions[0].outputs[0] = -1");
}
TEST(Verify, rejects_use_before_definition) {
  expect_refused([](auto& p) { std::swap(p.methods[0]->instructions[0], p.methods[0]->instructions[1]); },
                 "methods[0].instructions[0].inputs[0] = 4: no instruction before this one computes this value");
}
TEST(Verify, rejects_a_value_defined_twice) {
  expect_refused([](auto& p) { instruction(p, 0, 1).outputs[0] = kEmbedded; },
                 "methods[0].instructions[1].outputs[0] = 4: another output already defines");
}
TEST(Verify, rejects_a_weight_or_an_input_as_output) {
  expect_refused([](auto& p) { instruction(p, 0, 0).outputs[0] = kEmbeddingWeight; },
                 "methods[0].instructions[0].outputs[0] = 2: must be the index of a value of kind activation");
  expect_refused([](auto& p) { instruction(p, 0, 0).outputs[0] = kIds; },
                 "methods[0].instructions[0].outputs[0] = 0: must be the index");
}
TEST(Verify, rejects_instructions_without_output) {
  expect_refused([](auto& p) { instruction(p, 0, 0).outputs = {}; },
                 "methods[0].instructions[0] has 2 inputs and 0 outputs");
}
TEST(Verify, rejects_more_operands_and_attributes_than_any_op_has) {
  expect_refused([](auto& p) { instruction(p, 0, 0).inputs.assign(1025, 0); },
                 "methods[0].instructions[0] has 1025 inputs");
  const auto add = [](fb::ProgramT& p, int count) {
    for (int i = 0; i < count; ++i) instruction(p, 0, 0).attributes.push_back(test::integer_attribute("a", 1));
  };
  expect_refused([&](auto& p) { add(p, 33); }, "methods[0].instructions[0] has 33 attributes");
}
TEST(Verify, rejects_attributes_with_none_or_two_contents) {
  expect_refused([](auto& p) { instruction(p, 0, 1).attributes[0]->dims = {}; },
                 "methods[0].instructions[1].attributes[0] has 0 of dims, numbers and text");
  expect_refused([](auto& p) { instruction(p, 0, 1).attributes[0]->numbers = {1.0}; },
                 "methods[0].instructions[1].attributes[0] has 2 of dims, numbers and text");
}
TEST(Verify, rejects_attribute_dims_that_overflow) {
  expect_refused([](auto& p) { instruction(p, 0, 2).attributes[0]->dims = {{INT64_MAX, 0}}; },
                 "methods[0].instructions[2].attributes[0].dims[0] = 9223372036854775807 * T + 0");
  expect_refused([](auto& p) { instruction(p, 0, 2).attributes[0]->dims.assign(33, constant(0)); },
                 "methods[0].instructions[2].attributes[0] has 33 dims");
}
TEST(Verify, rejects_a_state_index_that_does_not_exist) {
  expect_refused([](auto& p) { instruction(p, 0, 1).attributes[0]->dims = {constant(1)}; },
                 "methods[0].instructions[1].attributes[0].dims[0] = 1: must be 0..0");
  expect_refused([](auto& p) { instruction(p, 0, 1).attributes[0]->dims = {constant(-1)}; },
                 "methods[0].instructions[1].attributes[0].dims[0] = -1");
  expect_refused([](auto& p) { instruction(p, 0, 1).attributes[0]->dims = {tokens()}; },
                 "methods[0].instructions[1].attributes[0] state: must be one constant");
}
TEST(Verify, rejects_more_instructions_than_values) {
  expect_refused(
      [](auto& p) {
        for (int i = 0; i < 9; ++i)
          p.methods[kDecode]->instructions.push_back(std::make_unique<fb::InstructionT>(instruction(p, kDecode, 0)));
      },
      "methods[1] has 13 instructions for 8 values");
}

}  // namespace
}  // namespace mote
