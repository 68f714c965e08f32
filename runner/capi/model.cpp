#include "runner/capi/handles.h"
#include "runner/generation/defaults.h"
#include "runner/model/describe.h"
#include "runner/model/generation_config.h"
#include "runner/program/machine.h"

using mote::Code;
using mote::Status;
using mote::capi::give;
using mote::capi::give_string;
using mote::capi::guarded;
using mote::capi::share;

mote_error_code mote_get_memory(mote_memory* memory, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(memory);
    const mote::ProcessMemory now = mote::process_memory();
    return mote::capi::write_struct(
        mote_memory{0, now.peak_rss_bytes, now.peak_private_bytes, now.peak_file_backed_bytes}, memory);
  });
}

mote_error_code mote_measure_limits(int32_t num_threads, mote_limits* limits, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(limits);
    MOTE_ASSIGN(const mote::Limits measured, mote::measure_machine(num_threads));
    return mote::capi::write_struct(mote_limits{0, measured.read_gb_s, measured.int8_gmac_s, measured.int8_wide_gmac_s},
                                    limits);
  });
}

mote_error_code mote_describe_kernels(char** json, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(json);
    MOTE_ASSIGN(const std::string description, mote::describe_kernels());
    return give_string(description, json);
  });
}

namespace {

// source_named: what makes the source of its name in messages
template <typename MakeSource>
Status open_model(const mote_options* requested, mote_model** out, const MakeSource& source_named) {
  MOTE_REQUIRE_POINTER(out);
  *out = nullptr;
  MOTE_ASSIGN(const mote::OptionSet given, mote::capi::options_of(requested));
  MOTE_ASSIGN(const mote::OpenOptions options, given.model());
  MOTE_ASSIGN(const mote::Source source, source_named(std::string_view(options.name)));
  MOTE_ASSIGN(auto model, mote::Model::open(source, options));
  MOTE_RETURN_IF_ERROR(mote::generation_defaults(*model).status());
  return give(out, std::move(model));
}

}  // namespace

mote_error_code mote_model_open(const char* path, const mote_options* options, mote_model** out, mote_error* error) {
  return guarded(error, [&] {
    return open_model(options, out, [&](std::string_view) -> mote::Result<mote::Source> {
      MOTE_REQUIRE_POINTER(path);
      return mote::Source(path);
    });
  });
}

mote_error_code mote_model_open_fd(int32_t fd, int64_t offset, int64_t length, const mote_options* options,
                                   mote_model** out, mote_error* error) {
  return guarded(error, [&] {
    return open_model(options, out, [&](std::string_view name) -> mote::Result<mote::Source> {
      std::string shown = name.empty() ? mote::format("descriptor %d", fd) : std::string(name);
      return mote::Source(mote::FilePart{std::move(shown), fd, offset, length});
    });
  });
}

mote_error_code mote_model_open_memory(const void* data, size_t bytes, mote_release release, void* owner,
                                       const mote_options* options, mote_model** out, mote_error* error) {
  return guarded(error, [&] {
    const mote::capi::Borrowed borrowed(owner, release);
    return open_model(options, out, [&](std::string_view name) -> mote::Result<mote::Source> {
      if (bytes > 0) MOTE_REQUIRE_POINTER(data);
      const std::span given(static_cast<const std::byte*>(data), bytes);
      return mote::Source(mote::MemoryBytes{std::string(name.empty() ? "memory" : name), given, borrowed.shared()});
    });
  });
}

void mote_model_close(mote_model* model) { mote::capi::close(model); }

mote_error_code mote_model_get_info(const mote_model* handle, mote_model_info* info, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto model, share(handle));
    MOTE_REQUIRE_POINTER(info);
    const mote::Model& found = *model->model;
    mote_model_info result{};
    result.vocab_size = found.vocab_size();
    result.max_position_embeddings = found.max_position_embeddings();
    result.bos_token_id = found.bos_token_id();
    result.has_tokenizer = found.has_tokenizer();
    result.has_chat_template = !found.chat_template().empty();
    result.file_bytes = found.file_bytes();
    result.weight_bytes = found.weight_bytes();
    result.generates = found.require_generation().ok();
    result.embeds = found.bound()->has_method(mote::kEmbed);
    return mote::capi::write_struct(result, info);
  });
}

mote_error_code mote_model_describe(const mote_model* handle, char** json, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto model, share(handle));
    MOTE_REQUIRE_POINTER(json);
    MOTE_ASSIGN(const std::string description, model->model->describe());
    return give_string(description, json);
  });
}

mote_error_code mote_describe_file(const char* path, char** json, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_REQUIRE_POINTER(path);
    MOTE_REQUIRE_POINTER(json);
    MOTE_ASSIGN(const std::string description, mote::describe_file(path));
    return give_string(description, json);
  });
}

mote_error_code mote_model_chat_template(const mote_model* handle, char** text, size_t* text_bytes, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto model, share(handle));
    MOTE_REQUIRE_POINTER(text);
    return give_string(model->model->chat_template(), text, text_bytes);
  });
}

mote_error_code mote_model_generation_config(const mote_model* handle, char** json, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto model, share(handle));
    MOTE_REQUIRE_POINTER(json);
    MOTE_ASSIGN(const std::string config,
                mote::generation_config_with_eos(model->model->generation_config(), model->model->eos_token_ids()));
    return give_string(config, json);
  });
}

mote_error_code mote_model_check_segments(const mote_model* handle, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto model, share(handle));
    return model->model->check_segments();
  });
}

mote_error_code mote_model_release_pages(const mote_model* handle, mote_error* error) {
  return guarded(error, [&]() -> Status {
    MOTE_ASSIGN(const auto model, share(handle));
    model->model->bound()->file().evict();
    return {};
  });
}
