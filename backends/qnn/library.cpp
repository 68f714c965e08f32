#include "backends/qnn/library.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "base/log.h"
#include "base/shared_library.h"

namespace mote::qnn {
namespace {

constexpr const char* kFolderVariable = "MOTE_QNN_LIBRARIES";
constexpr const char* kSocVariable = "MOTE_QNN_SOC";
constexpr const char* kPatienceVariable = "MOTE_QNN_PATIENCE";
constexpr const char* kName = "libQnnHtp.so";
constexpr uint32_t kHtpId = 6;
constexpr uint32_t kMajor = 2, kLeastMinor = 10;

struct Soc {
  std::string_view name;
  uint32_t model;
};
// V73 and later, which have float16.
constexpr std::array kSocs = {Soc{"sm8550", 43}, Soc{"sm8650", 57}, Soc{"sm8750", 69}, Soc{"sm8850", 87}};
#if defined(__ANDROID__)
constexpr std::optional<Soc> kDefaultSoc = std::nullopt;  // the device's own
constexpr int64_t kPatience = 60;                         // seconds
#else
constexpr std::optional<Soc> kDefaultSoc = kSocs[2];  // of the simulator
constexpr int64_t kPatience = 1200;                   // seconds
#endif

constexpr int64_t kMostPatience = 86400;
constexpr int64_t kCompiles = 10;  // times as long as a call

struct LastError {
  std::mutex mutex;
  std::string text;
};
LastError& last_error() {
  static LastError& made = *new LastError;
  return made;
}

void note(const char* pattern, uint32_t level, uint64_t, va_list arguments) {
  char text[512];
  std::vsnprintf(text, sizeof(text), pattern, arguments);
  std::string line(text);
  for (char& c : line) c = c == '\n' ? ' ' : c;
  while (!line.empty() && line.back() == ' ') line.pop_back();
  MOTE_LOG_LINE(kDebug, "qnn: %s", line.c_str());
  if (level > kLogErrors) return;
  const std::lock_guard lock(last_error().mutex);
  last_error().text = line;
}

Result<SharedLibrary> open_library() {
  const char* folder = std::getenv(kFolderVariable);
  const bool is_named = folder != nullptr && *folder != '\0';
#if !defined(__ANDROID__)
  MOTE_REQUIRE(is_named, Code::kUnsupportedBackend,
               "Qualcomm's %s is used only where %s names the folder that it is in: set it once you have accepted its "
               "licence",
               kName, kFolderVariable);
#endif
  const std::string path = is_named ? std::string(folder) + "/" + kName : kName;
  Result<SharedLibrary> opened = SharedLibrary::open(path);
  MOTE_REQUIRE(opened.ok(), Code::kUnsupportedBackend, "%s cannot be loaded: %s", path.c_str(),
               opened.status().message().c_str());
  return opened;
}

// Whether every function that is called is there: a table of another version may be shorter.
bool has_functions(const Functions& f) {
  return f.backend_create != nullptr && f.backend_get_build_id != nullptr && f.context_create != nullptr &&
         f.context_get_binary_size != nullptr && f.context_get_binary != nullptr &&
         f.context_create_from_binary != nullptr && f.context_free != nullptr && f.graph_create != nullptr &&
         f.graph_add_node != nullptr && f.graph_finalize != nullptr && f.graph_retrieve != nullptr &&
         f.graph_execute != nullptr && f.tensor_create_graph_tensor != nullptr && f.log_create != nullptr &&
         f.device_create != nullptr;
}

Result<const Provider*> find_provider(const SharedLibrary& library) {
  const std::string& path = library.name;
  const auto get = reinterpret_cast<GetProviders>(library.find("QnnInterface_getProviders"));
  MOTE_REQUIRE(get != nullptr, Code::kUnsupportedBackend, "%s: has no QnnInterface_getProviders: is no QNN library",
               path.c_str());
  const Provider** providers = nullptr;
  uint32_t count = 0;
  MOTE_REQUIRE(get(&providers, &count) == kSuccess && providers != nullptr, Code::kUnsupportedBackend,
               "%s: gives no interface", path.c_str());
  std::string found;
  for (uint32_t i = 0; i < count; ++i) {
    const Provider& provider = *providers[i];
    const bool fits = provider.backend_id == kHtpId && provider.core.major == kMajor &&
                      provider.core.minor >= kLeastMinor && has_functions(provider.functions);
    if (fits) return &provider;
    found += format("%sbackend %u with interface %u.%u", found.empty() ? "" : ", ", provider.backend_id,
                    provider.core.major, provider.core.minor);
  }
  return Status(Code::kUnsupportedBackend, format("%s: has %s: needs backend %u with interface %u.%u or later of %u",
                                                  path.c_str(), found.c_str(), kHtpId, kMajor, kLeastMinor, kMajor));
}

Result<std::optional<Soc>> wanted_soc() {
  const char* name = std::getenv(kSocVariable);
  if (name == nullptr || *name == '\0') return kDefaultSoc;
  std::string known;
  for (const Soc& soc : kSocs) {
    if (soc.name == name) return std::optional(soc);
    known += (known.empty() ? "" : ", ") + std::string(soc.name);
  }
  return Status(Code::kUnsupportedBackend, format("%s = %s: must be one of %s", kSocVariable, name, known.c_str()));
}

Result<int64_t> wanted_patience() {
  const char* text = std::getenv(kPatienceVariable);
  if (text == nullptr || *text == '\0') return kPatience;
  int64_t seconds = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, seconds);
  MOTE_REQUIRE(error == std::errc() && stop == end && seconds >= 1 && seconds <= kMostPatience,
               Code::kUnsupportedBackend, "%s = %s: must be 1 to %lld seconds", kPatienceVariable, text,
               static_cast<long long>(kMostPatience));
  return seconds;
}

Result<const Library*> load() {
  MOTE_ASSIGN(const int64_t patience, wanted_patience());
  MOTE_ASSIGN(const std::optional<Soc> soc, wanted_soc());
  MOTE_ASSIGN(const SharedLibrary opened, open_library());
  MOTE_ASSIGN(const Provider* provider, find_provider(opened));
  const std::string& path = opened.name;
  const Functions& f = provider->functions;
  auto made = std::make_unique<Library>();
  made->functions = f;
  const auto step = [&](ErrorHandle error, const char* what) {
    const Status status = qnn_status(error, what);
    return status.ok() ? status : Status(Code::kUnsupportedBackend, path + ": " + status.message());
  };
  const char* build = nullptr;
  Handle log = nullptr;
  MOTE_RETURN_IF_ERROR(step(f.backend_get_build_id(&build), "tell its version"));
  MOTE_RETURN_IF_ERROR(step(f.log_create(note, kLogErrors, &log), "make a log"));
  MOTE_RETURN_IF_ERROR(step(f.backend_create(log, nullptr, &made->backend), "start"));
  CustomConfig custom{kDeviceSoc, {soc ? soc->model : 0, soc ? soc->model : 0}};
  const Config config{0, &custom};
  const Config* configs[] = {&config, nullptr};
  MOTE_RETURN_IF_ERROR(step(f.device_create(log, soc ? configs : nullptr, &made->device), "open the device"));
  made->build = std::string(build == nullptr ? "" : build) + " " + std::string(soc ? soc->name : "device");
  made->patience = std::chrono::seconds(patience);
  made->patience_to_compile = kCompiles * made->patience;
  MOTE_LOG_LINE(kInfo, "qnn: %s: %s, interface %u.%u", path.c_str(), made->build.c_str(), provider->core.major,
                provider->core.minor);
  return static_cast<const Library*>(made.release());
}

}  // namespace

Status qnn_status(ErrorHandle error, const char* what) {
  if (error == kSuccess) return {};
  std::string text = format("QNN could not %s: error %llu", what, static_cast<unsigned long long>(error));
  const std::lock_guard lock(last_error().mutex);
  if (!last_error().text.empty()) text += ": " + last_error().text;
  return {Code::kInternal, text};
}

Result<const Library*> library() {
  static const Result<const Library*>& loaded = *new Result<const Library*>(load());
  return loaded;
}

}  // namespace mote::qnn
