#include "tokenizer/capi/mote_tokenizer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>

#include "base/handles.h"
#include "base/utf8.h"
#include "tokenizer/batch.h"
#include "tokenizer/compile/compile.h"
#include "tokenizer/tokenizer.h"

using mote::Code;
using mote::Result;
using mote::Status;

namespace {

struct OpenTokenizer {
  static constexpr const char* kName = "tokenizer";
  mote::Tokenizer tokenizer;
  std::unique_ptr<uint64_t[]> bytes;  // where the caller's were copied
};

using Held = mote::Held<OpenTokenizer>;

int32_t report(Code status_code, std::string_view message, mote_tokenizer_error* error) noexcept {
  const auto code = static_cast<int32_t>(status_code);
  if (error == nullptr || error->struct_size < sizeof(mote_tokenizer_error)) return code;
  error->code = code;
  std::string_view text = message.substr(0, sizeof error->message - 1);
  text.remove_suffix(mote::incomplete_utf8_suffix(text));
  if (!text.empty()) std::memcpy(error->message, text.data(), text.size());
  error->message[text.size()] = '\0';
  return code;
}

template <typename Body>
int32_t guarded(mote_tokenizer_error* error, Body body) {
  try {
    const Status status = body();
    return report(status.code(), status.message(), error);
  } catch (const std::bad_alloc&) {
    return report(Code::kOutOfMemory, "out of memory", error);
  } catch (const std::exception& exception) { return report(Code::kInternal, exception.what(), error); }
}

#define MOTE_REQUIRE_POINTER(pointer) MOTE_REQUIRE((pointer) != nullptr, Code::kInvalidArgument, #pointer " is NULL")
#define MOTE_REQUIRE_SIZE(pointer, type)                                       \
  MOTE_REQUIRE((pointer)->struct_size >= sizeof(type), Code::kInvalidArgument, \
               #pointer "->struct_size = %u: must be %zu", (pointer)->struct_size, sizeof(type))

// A copy of `count` elements and a zero behind it, freed by std::free.
template <typename T>
Result<T*> give(const T* from, size_t count) {
  auto* copy = static_cast<T*>(std::malloc((count + 1) * sizeof(T)));
  MOTE_REQUIRE(copy != nullptr, Code::kOutOfMemory, "out of memory for %zu bytes", count * sizeof(T));
  if (count > 0) std::memcpy(copy, from, count * sizeof(T));
  std::memset(copy + count, 0, sizeof(T));
  return copy;
}

std::string text_of(const char* text) { return text == nullptr ? std::string() : std::string(text); }

Result<std::vector<std::byte>> compiled(const mote_tokenizer_source& source) {
  const std::string_view bytes(static_cast<const char*>(source.bytes), source.num_bytes);
  if (source.pattern == nullptr && source.num_special == 0)
    return mote::tokenizer::compile_any(bytes, text_of(source.name));
  mote::tokenizer::TiktokenOptions options{text_of(source.pattern), text_of(source.name), {}};
  for (size_t i = 0; i < source.num_special; ++i) {
    MOTE_REQUIRE(
        source.special_tokens != nullptr && source.special_ids != nullptr && source.special_tokens[i] != nullptr,
        Code::kInvalidArgument, "special_tokens[%zu] is NULL", i);
    options.special_tokens[source.special_tokens[i]] = source.special_ids[i];
  }
  return mote::tokenizer::compile_tiktoken(bytes, options);
}

Result<mote::EncodeOptions> options_of(const mote_tokenizer_options* from, std::vector<mote::TextRange>& plain) {
  mote::EncodeOptions options;
  if (from == nullptr) return options;
  MOTE_REQUIRE_SIZE(from, mote_tokenizer_options);
  options.add_special = from->add_special != 0;
  options.parse_special = from->parse_special != 0;
  MOTE_REQUIRE(from->offsets >= 0 && from->offsets <= 2, Code::kInvalidArgument, "offsets = %d: must be 0, 1 or 2",
               from->offsets);
  if (from->num_plain > 0) MOTE_REQUIRE_POINTER(from->plain);
  for (size_t i = 0; i < from->num_plain; ++i) plain.push_back({from->plain[i].begin, from->plain[i].end});
  options.plain = plain;
  return options;
}

Result<mote::Encoding> encode(const mote::Tokenizer& tokenizer, const mote_tokenizer_input& input,
                              const mote_tokenizer_options* from) {
  std::vector<mote::TextRange> plain;
  MOTE_ASSIGN(const mote::EncodeOptions options, options_of(from, plain));
  const std::string_view text(input.num_bytes > 0 ? input.text : "", input.num_bytes);
  const auto unit = from != nullptr && from->offsets == 1 ? mote::OffsetUnit::kBytes : mote::OffsetUnit::kCharacters;
  if (input.pair != nullptr) return tokenizer.encode_pair(text, {input.pair, input.num_pair_bytes}, options, unit);
  if (from != nullptr && from->offsets != 0) return tokenizer.encode_with_offsets(text, options, unit);
  mote::Encoding encoding;
  MOTE_ASSIGN(encoding.ids, tokenizer.encode(text, options));
  return encoding;
}

Status encode_into(const mote::Tokenizer& tokenizer, const mote_tokenizer_input& input,
                   const mote_tokenizer_options* options, mote_tokenizer_encoding& encoding) {
  if (input.num_bytes > 0) MOTE_REQUIRE_POINTER(input.text);
  MOTE_ASSIGN(const mote::Encoding made, encode(tokenizer, input, options));
  MOTE_ASSIGN(encoding.ids, give(made.ids.data(), made.ids.size()));
  encoding.count = made.ids.size();
  if (options == nullptr || options->offsets == 0) return {};
  static_assert(sizeof(mote::tokenizer::Origin) == 2 * sizeof(uint32_t));
  MOTE_ASSIGN(encoding.offsets, give(reinterpret_cast<const uint32_t*>(made.offsets.data()), 2 * made.offsets.size()));
  MOTE_ASSIGN(encoding.type_ids, give(made.type_ids.data(), made.type_ids.size()));
  return {};
}

void make_empty(mote_tokenizer_encoding& encoding) {
  encoding.ids = nullptr;
  encoding.offsets = nullptr;
  encoding.type_ids = nullptr;
  encoding.count = 0;
}

// Calls work(i), which returns Status, for each item in threads. If one fails or throws, calls clear() and gives the
// first error.
template <typename Work, typename Clear>
Status all_or_nothing(size_t count, size_t num_threads, const Work& work, const Clear& clear) {
  std::vector<Status> statuses(count);
  try {
    mote::tokenizer::for_each_in_threads(count, num_threads, [&](size_t i) { statuses[i] = work(i); });
  } catch (...) {
    clear();
    throw;
  }
  for (Status& status : statuses) {
    if (status.ok()) continue;
    clear();
    return std::move(status);
  }
  return {};
}

Status encode_all(const mote::Tokenizer& tokenizer, const mote_tokenizer_input* inputs, size_t count,
                  const mote_tokenizer_options* options, size_t num_threads, mote_tokenizer_encoding* encodings) {
  for (size_t i = 0; i < count; ++i) {
    MOTE_REQUIRE_SIZE(inputs + i, mote_tokenizer_input);
    MOTE_REQUIRE_SIZE(encodings + i, mote_tokenizer_encoding);
  }
  for (size_t i = 0; i < count; ++i) make_empty(encodings[i]);
  const auto encode = [&](size_t i) { return encode_into(tokenizer, inputs[i], options, encodings[i]); };
  return all_or_nothing(count, num_threads, encode, [&] {
    for (size_t i = 0; i < count; ++i) mote_tokenizer_encoding_clear(encodings + i);
  });
}

Status decode_into(const mote::Tokenizer& tokenizer, mote_tokenizer_sequence& sequence, bool skip_special) {
  if (sequence.count > 0) MOTE_REQUIRE_POINTER(sequence.ids);
  const std::string decoded = tokenizer.decode(std::span(sequence.ids, sequence.count), skip_special);
  MOTE_ASSIGN(sequence.text, give(decoded.data(), decoded.size()));
  sequence.num_bytes = decoded.size();
  return {};
}

Status decode_all(const mote::Tokenizer& tokenizer, mote_tokenizer_sequence* sequences, size_t count, bool skip_special,
                  size_t num_threads) {
  const auto decode = [&](size_t i) { return decode_into(tokenizer, sequences[i], skip_special); };
  return all_or_nothing(count, num_threads, decode, [&] {
    for (size_t i = 0; i < count; ++i) {
      std::free(sequences[i].text);
      sequences[i].text = nullptr;
    }
  });
}

Status check_threads(int32_t num_threads) {
  MOTE_REQUIRE(num_threads >= 0 && num_threads <= 256, Code::kInvalidArgument, "num_threads = %d: must be 0 to 256",
               num_threads);
  return {};
}

}  // namespace

int32_t mote_tokenizer_compile(const mote_tokenizer_source* source, void** segment, size_t* num_bytes,
                               mote_tokenizer_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(source);
    MOTE_REQUIRE_POINTER(segment);
    MOTE_REQUIRE_POINTER(num_bytes);
    MOTE_REQUIRE_SIZE(source, mote_tokenizer_source);
    if (source->num_bytes > 0) MOTE_REQUIRE_POINTER(source->bytes);
    MOTE_ASSIGN(const std::vector<std::byte> bytes, compiled(*source));
    MOTE_ASSIGN(*segment, give(bytes.data(), bytes.size()));
    *num_bytes = bytes.size();
    return {};
  });
}

int32_t mote_tokenizer_open(const void* segment, size_t num_bytes, int32_t copy, mote_tokenizer_handle** tokenizer,
                            mote_tokenizer_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(segment);
    MOTE_REQUIRE_POINTER(tokenizer);
    std::unique_ptr<uint64_t[]> bytes;
    const void* from = segment;
    if (copy != 0) {
      bytes = std::make_unique<uint64_t[]>(num_bytes / 8 + 1);
      std::memcpy(bytes.get(), segment, num_bytes);
      from = bytes.get();
    }
    const std::span<const std::byte> view(static_cast<const std::byte*>(from), num_bytes);
    MOTE_ASSIGN(mote::Tokenizer opened, mote::Tokenizer::open(view));
    std::unique_ptr<OpenTokenizer> object(new OpenTokenizer{std::move(opened), std::move(bytes)});
    MOTE_ASSIGN(void* handle, mote::open_handle(std::move(object)));
    *tokenizer = static_cast<mote_tokenizer_handle*>(handle);
    return {};
  });
}

void mote_tokenizer_close(mote_tokenizer_handle* tokenizer) {
  mote::close_handle(mote::kHandleKind<OpenTokenizer>, tokenizer);
}

int32_t mote_tokenizer_encode(const mote_tokenizer_handle* handle, const char* text, size_t num_bytes,
                              const mote_tokenizer_options* options, mote_tokenizer_encoding* encoding,
                              mote_tokenizer_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto tokenizer, Held::of(handle));
    MOTE_REQUIRE_POINTER(encoding);
    MOTE_REQUIRE_SIZE(encoding, mote_tokenizer_encoding);
    if (num_bytes > 0) MOTE_REQUIRE_POINTER(text);
    make_empty(*encoding);
    auto input = mote_tokenizer_input{sizeof(mote_tokenizer_input), text, num_bytes, nullptr, 0};
    const Status status = encode_into(tokenizer->tokenizer, input, options, *encoding);
    if (!status.ok()) mote_tokenizer_encoding_clear(encoding);
    return status;
  });
}

int32_t mote_tokenizer_encode_batch(const mote_tokenizer_handle* handle, const mote_tokenizer_input* inputs,
                                    size_t count, const mote_tokenizer_options* options, int32_t num_threads,
                                    mote_tokenizer_encoding* encodings, mote_tokenizer_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto tokenizer, Held::of(handle));
    MOTE_RETURN_IF_ERROR(check_threads(num_threads));
    if (count == 0) return {};
    MOTE_REQUIRE_POINTER(inputs);
    MOTE_REQUIRE_POINTER(encodings);
    if (options != nullptr) {
      MOTE_REQUIRE_SIZE(options, mote_tokenizer_options);
      MOTE_REQUIRE(options->num_plain == 0, Code::kInvalidArgument, "num_plain = %zu: must be 0 in a batch",
                   options->num_plain);
    }
    return encode_all(tokenizer->tokenizer, inputs, count, options, static_cast<size_t>(num_threads), encodings);
  });
}

int32_t mote_tokenizer_decode_batch(const mote_tokenizer_handle* handle, mote_tokenizer_sequence* sequences,
                                    size_t count, int32_t skip_special, int32_t num_threads,
                                    mote_tokenizer_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto tokenizer, Held::of(handle));
    MOTE_RETURN_IF_ERROR(check_threads(num_threads));
    if (count == 0) return {};
    MOTE_REQUIRE_POINTER(sequences);
    for (size_t i = 0; i < count; ++i) MOTE_REQUIRE_SIZE(sequences + i, mote_tokenizer_sequence);
    for (size_t i = 0; i < count; ++i) sequences[i].text = nullptr;
    return decode_all(tokenizer->tokenizer, sequences, count, skip_special != 0, static_cast<size_t>(num_threads));
  });
}

void mote_tokenizer_encoding_clear(mote_tokenizer_encoding* encoding) {
  if (encoding == nullptr) return;
  std::free(encoding->ids);
  std::free(encoding->offsets);
  std::free(encoding->type_ids);
  make_empty(*encoding);
}

int32_t mote_tokenizer_decode(const mote_tokenizer_handle* handle, const int32_t* ids, size_t count,
                              int32_t skip_special, char** text, size_t* num_bytes, mote_tokenizer_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto tokenizer, Held::of(handle));
    MOTE_REQUIRE_POINTER(text);
    if (count > 0) MOTE_REQUIRE_POINTER(ids);
    const std::string decoded = tokenizer->tokenizer.decode({ids, count}, skip_special != 0);
    MOTE_ASSIGN(*text, give(decoded.data(), decoded.size()));
    if (num_bytes != nullptr) *num_bytes = decoded.size();
    return {};
  });
}

int32_t mote_tokenizer_num_ids(const mote_tokenizer_handle* handle) {
  const Held tokenizer = Held::find(handle);
  return tokenizer ? tokenizer->tokenizer.num_ids() : 0;
}

int32_t mote_tokenizer_token_to_id(const mote_tokenizer_handle* handle, const char* token, size_t num_bytes) {
  const Held tokenizer = Held::find(handle);
  if (!tokenizer || token == nullptr) return -1;
  try {
    return tokenizer->tokenizer.token_id({token, num_bytes});
  } catch (const std::exception&) { return -1; }
}

int32_t mote_tokenizer_id_to_token(const mote_tokenizer_handle* handle, int32_t id, char** token, size_t* num_bytes,
                                   mote_tokenizer_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto tokenizer, Held::of(handle));
    MOTE_REQUIRE_POINTER(token);
    *token = nullptr;
    if (!tokenizer->tokenizer.has_token(id)) return {};
    const std::string text = tokenizer->tokenizer.token_text(id);
    MOTE_ASSIGN(*token, give(text.data(), text.size()));
    if (num_bytes != nullptr) *num_bytes = text.size();
    return {};
  });
}

int32_t mote_tokenizer_is_special(const mote_tokenizer_handle* handle, int32_t id) {
  const Held tokenizer = Held::find(handle);
  return tokenizer && tokenizer->tokenizer.is_special(id);
}

void mote_tokenizer_free(void* memory) { std::free(memory); }
