// Products in each form of weights that the HTP is known to compute rightly, given to the library by hand: that our
// declarations of its interface are its own. Runs where MOTE_QNN_LIBRARIES names the library's folder.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "backends/qnn/library.h"
#include "kernels/support/float_bits.h"

namespace mote::qnn::test {
namespace {

constexpr uint32_t kM = 4, kK = 64, kN = 48, kBlock = 32, kBlocks = kK / kBlock;
constexpr float kInputScale = 2.0f / 65535, kOutputScale = 8.0f / 65535;
constexpr int32_t kMiddle = -32768;

enum class Form { kHalf, kHalfByBytes, kWordsByBytes, kWordsByBlocks };

QnnTensor tensor(const char* name, TensorType type, DataType data_type, std::vector<uint32_t>& sizes) {
  QnnTensor made{};
  made.version = 1;
  made.v1.name = name;
  made.v1.type = type;
  made.v1.data_type = data_type;
  made.v1.quantize.definition = Definition::kUndefined;
  made.v1.quantize.encoding = Encoding::kUndefined;
  made.v1.rank = static_cast<uint32_t>(sizes.size());
  made.v1.dimensions = sizes.data();
  return made;
}

void set_words(QnnTensor& made, float scale) {
  made.v1.quantize.definition = Definition::kDefined;
  made.v1.quantize.encoding = Encoding::kScaleOffset;
  made.v1.quantize.scale_offset = {scale, kMiddle};
}

// A weight [K, N] in one form, and the numbers that it stands for.
struct Weight {
  std::vector<float> numbers = std::vector<float>(kK * kN);
  std::vector<int8_t> codes = std::vector<int8_t>(kK * kN);
  std::vector<uint16_t> halves = std::vector<uint16_t>(kK * kN);
  std::vector<ScaleOffset> scales = std::vector<ScaleOffset>(kN);
  std::vector<uint8_t> block_scales = std::vector<uint8_t>(kN * kBlocks);
  BlockwiseExpansion blocks{};

  explicit Weight(Form form) {
    for (uint32_t n = 0; n < kN; ++n) {
      const bool has_blocks = form == Form::kWordsByBlocks;
      scales[n] = {has_blocks ? 0.001f : 0.1f / 127, 0};
      for (uint32_t k = 0; k < kK; ++k) {
        const uint32_t at = k * kN + n;
        uint8_t& block_scale = block_scales[n * kBlocks + k / kBlock];
        block_scale = has_blocks ? static_cast<uint8_t>(8 + (n + k / kBlock) % 7) : uint8_t{1};
        const int limit = has_blocks ? 7 : 127;
        codes[at] = static_cast<int8_t>(std::lround(std::cos(0.73 * at) * limit));
        numbers[at] = scales[n].scale * static_cast<float>(block_scale * codes[at]);
        halves[at] = float32_to_float16(numbers[at]);
      }
    }
    blocks = {1, scales.data(), kBlocks, 4, 0, block_scales.data()};
  }

  void give(Form form, QnnTensor& to) {
    if (form == Form::kHalf) {
      to.v1.buffer = {halves.data(), static_cast<uint32_t>(halves.size() * 2)};
      return;
    }
    to.v1.buffer = {codes.data(), static_cast<uint32_t>(codes.size())};
    to.v1.quantize.definition = Definition::kDefined;
    to.v1.quantize.encoding = form == Form::kWordsByBlocks ? Encoding::kBlockwiseExpansion : Encoding::kAxisScaleOffset;
    if (form == Form::kWordsByBlocks)
      to.v1.quantize.blocks = &blocks;
    else
      to.v1.quantize.axis = {1, kN, scales.data()};
  }
};

class QnnProducts : public testing::TestWithParam<Form> {};

TEST_P(QnnProducts, are_those_of_the_numbers) {
  const char* folder = std::getenv("MOTE_QNN_LIBRARIES");
  if (folder == nullptr || *folder == '\0')
    GTEST_SKIP() << "MOTE_QNN_LIBRARIES does not name the folder of Qualcomm's libraries";
  const Result<const Library*> found = library();
  ASSERT_TRUE(found.ok()) << found.status().message();
  const Functions& f = (*found)->functions;
  const auto ok = [](ErrorHandle error) { return qnn_status(error, "do a step of the test"); };
  Handle context = nullptr, graph = nullptr;
  ASSERT_TRUE(ok(f.context_create((*found)->backend, (*found)->device, nullptr, &context)).ok());
  CustomConfig custom{kGraphPrecision, {kFloat16Precision, kFloat16Precision}};
  const Config config{0, &custom};
  const Config* configs[] = {&config, nullptr};
  ASSERT_TRUE(ok(f.graph_create(context, "product", configs, &graph)).ok());

  const Form form = GetParam();
  const bool is_half = form == Form::kHalf || form == Form::kHalfByBytes;
  const DataType data_type = is_half ? DataType::kFloat16 : DataType::kUnsignedFixed16;
  std::vector<uint32_t> x_sizes = {kM, kK}, w_sizes = {kK, kN}, y_sizes = {kM, kN};
  QnnTensor x = tensor("x", TensorType::kAppWrite, data_type, x_sizes);
  QnnTensor w =
      tensor("w", TensorType::kStatic, form == Form::kHalf ? DataType::kFloat16 : DataType::kSignedFixed8, w_sizes);
  QnnTensor y = tensor("y", TensorType::kAppRead, data_type, y_sizes);
  if (!is_half) {
    set_words(x, kInputScale);
    set_words(y, kOutputScale);
  }
  Weight weight(form);
  weight.give(form, w);
  for (QnnTensor* each : {&x, &w, &y}) ASSERT_TRUE(ok(f.tensor_create_graph_tensor(graph, each)).ok());
  QnnTensor inputs[] = {x, w};
  const OpConfig op{1, "product", "qti.aisw", "MatMul", 0, nullptr, 2, inputs, 1, &y};
  ASSERT_TRUE(ok(f.graph_add_node(graph, op)).ok());
  const Status compiled = ok(f.graph_finalize(graph, nullptr, nullptr));
  ASSERT_TRUE(compiled.ok()) << compiled.message();

  std::vector<uint16_t> given(kM * kK), got(kM * kN);
  std::vector<double> numbers(kM * kK);
  for (size_t i = 0; i < given.size(); ++i) {
    const auto number = static_cast<float>(std::sin(0.37 * static_cast<double>(i)));
    given[i] =
        is_half ? float32_to_float16(number) : static_cast<uint16_t>(std::lround(number / kInputScale) - kMiddle);
    numbers[i] = is_half ? float16_to_float32(given[i]) : kInputScale * (given[i] + kMiddle);
  }
  x.v1.buffer = {given.data(), static_cast<uint32_t>(given.size() * 2)};
  y.v1.buffer = {got.data(), static_cast<uint32_t>(got.size() * 2)};
  ASSERT_TRUE(ok(f.graph_execute(graph, &x, 1, &y, 1, nullptr, nullptr)).ok());
  double error = 0, largest = 0;
  for (uint32_t m = 0; m < kM; ++m) {
    for (uint32_t n = 0; n < kN; ++n) {
      double expected = 0;
      for (uint32_t k = 0; k < kK; ++k) expected += numbers[m * kK + k] * double{weight.numbers[k * kN + n]};
      const uint16_t code = got[m * kN + n];
      const double computed = is_half ? double{float16_to_float32(code)} : kOutputScale * (code + kMiddle);
      error = std::max(error, std::abs(computed - expected));
      largest = std::max(largest, std::abs(expected));
    }
  }
  EXPECT_LT(error, 5e-3 * largest);
  EXPECT_EQ(f.context_free(context, nullptr), kSuccess);
}

INSTANTIATE_TEST_SUITE_P(forms, QnnProducts,
                         testing::Values(Form::kHalf, Form::kHalfByBytes, Form::kWordsByBytes, Form::kWordsByBlocks));

}  // namespace
}  // namespace mote::qnn::test
