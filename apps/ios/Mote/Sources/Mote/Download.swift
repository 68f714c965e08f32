import CMote
import Foundation

/// How far a download is.
public struct DownloadProgress: Hashable, Sendable {
    /// Of the model.
    public let name: String
    /// Where the file goes; nil: not known yet.
    public let url: URL?
    /// That have come; fewer than before where what came proved to be wrong.
    public let bytes: Int64
    /// nil: not known yet.
    public let totalBytes: Int64?
    public let isDone: Bool
    /// Once done: the store has another file than before.
    public let isNew: Bool
    /// What the download waits for; nil: it does not.
    public let waitsFor: String?
}

/// A file on its way into a store. Until it ends nobody else downloads to the model. For one task at a time.
final class Download: @unchecked Sendable {
    private let begin: @Sendable () throws -> Handle
    private let options: DownloadOptions
    private let client: any DownloadClient
    private let isMetered: @Sendable () -> Bool
    private var handle: Handle?
    private var body: AsyncThrowingStream<DownloadAnswer.Part, any Error>.Iterator?
    private var heldBytes: Int64 = 0
    private var waitMilliseconds: UInt64 = 0
    private var isOver = false
    /// By the client.
    private var foundMetered = false

    init(
        _ store: Handle, _ what: String, _ options: DownloadOptions, _ client: any DownloadClient, _ isMetered: @escaping @Sendable () -> Bool
    ) {
        begin = { try options.begin(store, what) }
        self.options = options
        self.client = client
        self.isMetered = isMetered
    }

    /// The next piece, or the next step on the way to it; nil: it is over.
    func next() async throws -> DownloadProgress? {
        if isOver { return nil }
        do {
            let progress = try await step()
            if progress.isDone {
                close()
                progress.url?.excludeFromBackup()
            }
            return progress
        } catch {
            close()
            throw error
        }
    }

    private func close() {
        isOver = true
        body = nil
        handle?.close()
    }

    /// As in the C API.
    private enum Action: Int32 {
        case request = 1
        case wait = 2
        case done = 3
    }

    private enum Step {
        case request(URL, [DownloadRequest.Header])
        case wait(UInt64, String)
        case done
    }

    private func step() async throws -> DownloadProgress {
        try await Task.sleep(nanoseconds: waitMilliseconds * 1_000_000)
        waitMilliseconds = 0
        let handle = try handle ?? begin()
        self.handle = handle
        setMetered(handle, foundMetered || isMetered())
        if body != nil {
            try await receive(handle)
            return try progress(handle)
        }
        switch try await blocking({ try Self.nextStep(handle) }) {
        case .request(let url, let headers):
            try await ask(handle, DownloadRequest(url: url, headers: headers, allowsMetered: options.allowsMetered))
            return try progress(handle)
        case .wait(let milliseconds, let reason):
            waitMilliseconds = milliseconds
            return try progress(handle, waitsFor: reason)
        case .done: return try progress(handle)
        }
    }

    private static func nextStep(_ handle: Handle) throws -> Step {
        var step = mote_download_step()
        step.struct_size = UInt32(MemoryLayout<mote_download_step>.size)
        try handle.call { mote_download_next($0, &step, $1) }
        switch Action(rawValue: step.action.rawValue) {
        case .request:
            let text = String(cString: step.url)
            guard let url = URL(string: text) else {
                throw MoteError(code: .invalidArgument, message: "\(text): must be an URL, with other characters as %20 and the like")
            }
            return .request(url, headers(String(cString: step.headers)))
        case .wait: return .wait(UInt64(max(step.wait_ms, 0)), String(cString: step.reason))
        case .done, nil: return .done
        }
    }

    private static func headers(_ lines: String) -> [DownloadRequest.Header] {
        lines.components(separatedBy: "\r\n").compactMap { line in
            guard let colon = line.range(of: ": ") else { return nil }
            return DownloadRequest.Header(String(line[..<colon.lowerBound]), String(line[colon.upperBound...]))
        }
    }

    private func ask(_ handle: Handle, _ request: DownloadRequest) async throws {
        do {
            let answer = try await client.answer(to: request)
            let lines = answer.headers.map { "\($0.name): \($0.value)\n" }.joined()
            let wantsBody = try await blocking { () throws -> Bool in
                var wantsBody: Int32 = 0
                try lines.withCBytes { lines, bytes in
                    try handle.call { mote_download_respond($0, Int32(answer.status), lines, bytes, &wantsBody, $1) }
                }
                return wantsBody != 0
            }
            if wantsBody {
                body = answer.body.makeAsyncIterator()
            } else {
                try await end(handle, nil)
            }
        } catch {
            try await brokeOff(handle, error)
        }
    }

    private func receive(_ handle: Handle) async throws {
        do {
            switch try await body?.next() {
            case .bytes(let data):
                heldBytes = 0
                try await blocking {
                    try data.withUnsafeBytes { bytes in
                        try handle.call { mote_download_write($0, bytes.baseAddress, bytes.count, $1) }
                    }
                }
            case .held(let count): heldBytes = count
            case nil: try await end(handle, nil)
            }
        } catch {
            try await brokeOff(handle, error)
        }
    }

    /// The core's own refusals and cancelled tasks end the download; what befell the client is told to the core.
    private func brokeOff(_ handle: Handle, _ error: any Error) async throws {
        try Task.checkCancellation()
        if error is MoteError { throw error }
        foundMetered = error is MeteredNetworkError
        try await end(handle, error.localizedDescription)
    }

    private func end(_ handle: Handle, _ broken: String?) async throws {
        body = nil
        heldBytes = 0
        try Task.checkCancellation()
        try await blocking {
            try withOptionalCString(broken) { broken in try handle.call { mote_download_end($0, broken, $1) } }
        }
    }

    private func setMetered(_ handle: Handle, _ isMetered: Bool) {
        guard let pointer = try? handle.pointer() else { return }
        withExtendedLifetime(handle) { mote_download_set_metered(pointer, isMetered ? 1 : 0) }
    }

    private func progress(_ handle: Handle, waitsFor reason: String? = nil) throws -> DownloadProgress {
        var info = mote_download_info()
        info.struct_size = UInt32(MemoryLayout<mote_download_info>.size)
        try handle.call { mote_download_get_info($0, &info, $1) }
        let path = String(cString: info.path)
        return DownloadProgress(
            name: String(cString: info.name), url: path.isEmpty ? nil : URL(fileURLWithPath: path), bytes: info.bytes + heldBytes,
            totalBytes: info.total_bytes < 0 ? nil : info.total_bytes, isDone: info.is_done != 0, isNew: info.is_new != 0, waitsFor: reason)
    }
}

extension DownloadOptions {
    fileprivate func begin(_ store: Handle, _ what: String) throws -> Handle {
        try withOptionalCString(endpoint) { endpoint in
            try withOptionalCString(token) { token in
                try withOptionalCString(sha256) { sha256 in
                    var options = mote_download_options()
                    options.struct_size = UInt32(MemoryLayout<mote_download_options>.size)
                    options.endpoint = endpoint
                    options.token = token
                    options.sha256 = sha256
                    options.allow_metered = allowsMetered ? 1 : 0
                    options.keep_free_bytes = keepFreeBytes ?? -1
                    return try store.opened("download", close: mote_download_close) { mote_download_begin($0, what, &options, $1, $2) }
                }
            }
        }
    }
}

extension URL {
    /// What can be downloaded again has no place in backups.
    fileprivate func excludeFromBackup() {
        #if canImport(Darwin)
            var file = self
            var values = URLResourceValues()
            values.isExcludedFromBackup = true
            try? file.setResourceValues(values)
        #endif
    }
}
