import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a stream keeps between its steps, which come one at a time.
private final class OfOneTask<Value>: @unchecked Sendable {
    var value: Value

    init(_ value: Value) {
        self.value = value
    }
}

/// Downloads that the system goes on with while the app is suspended or was ended. The first bytes of a file come while the app runs, so
/// that one that cannot be used is refused early; the rest comes in one task of a background session. Begun again, also by another
/// process, a download of the same takes over the task or the file that it has left. One object for each identifier of a session, made
/// when the app starts and kept.
///
/// Servers that take no ranges or give no ETag are read while the app runs. The rest of a file lies on the disk twice for as long as it
/// is checked.
public final class BackgroundDownloads: NSObject, DownloadClient, @unchecked Sendable {
    private struct BrokenOff: LocalizedError {
        let errorDescription: String?
    }

    private static let pieceBytes = 1 << 20

    private let foreground = URLSessionDownloads()
    private let foregroundBytes: Int64
    private let folder: URL
    private let feeds = Locked<[String: Feed<Int64>]>([:])
    private let onEventsEnd = Locked<(@Sendable () -> Void)?>(nil)
    private var session: URLSession!

    /// configuration: `.background(withIdentifier:)`; with others everything ends with the app   folder: where the system's files are held,
    /// nil: below the caches   foregroundBytes: of a file, or of a rest that is not longer
    public init(configuration: URLSessionConfiguration, folder: URL? = nil, foregroundBytes: Int64 = 16 << 20) {
        let caches = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first ?? FileManager.default.temporaryDirectory
        self.folder = folder ?? caches.appendingPathComponent("mote-downloads")
        self.foregroundBytes = foregroundBytes
        super.init()
        session = URLSession(configuration: configuration, delegate: self, delegateQueue: nil)
    }

    /// For `application(_:handleEventsForBackgroundURLSession:completionHandler:)`: called on the main thread when all files are safe.
    public func whenEventsEnd(_ completion: @escaping @Sendable () -> Void) { onEventsEnd.withLock { $0 = completion } }

    /// Ends all tasks, also those that downloads which were cancelled have left, and deletes what they brought.
    public func discard() async {
        for task in await tasks() { task.cancel() }
        try? FileManager.default.removeItem(at: folder)
    }

    public func answer(to request: DownloadRequest) async throws -> DownloadAnswer {
        var answer = try await foreground.answer(to: request)
        guard let length = answer["Content-Length"].flatMap({ Int64($0) }), length > foregroundBytes, let key = Self.key(answer) else {
            return answer
        }
        if answer.status == 206 {
            answer.body = rest(request, key)
        } else if answer["Accept-Ranges"] == "bytes", !request.headers.contains(where: { $0.name == "Range" }) {
            answer.body = beginning(answer.body)
        }
        return answer
    }

    /// What tells the content of an answer from others; nil: nothing does.
    private static func key(_ answer: DownloadAnswer) -> String? {
        guard let etag = answer["ETag"], etag.hasPrefix("\"") else { return nil }
        return etag + " " + (answer["Content-Range"] ?? "")
    }

    private typealias Body = AsyncThrowingStream<DownloadAnswer.Part, any Error>

    private func beginning(_ body: Body) -> Body {
        let state = OfOneTask((parts: body.makeAsyncIterator(), left: foregroundBytes))
        return AsyncThrowingStream {
            if state.value.left <= 0 { throw BrokenOff(errorDescription: "the rest comes in the background") }
            let part = try await state.value.parts.next()
            if case .bytes(let data) = part { state.value.left -= Int64(data.count) }
            return part
        }
    }

    private func rest(_ request: DownloadRequest, _ key: String) -> Body {
        let reader = FeedReader(Feed<Int64>(burstNanoseconds: 0))
        let state = OfOneTask((hasBegun: false, file: FileHandle?.none))
        return AsyncThrowingStream { [self] in
            if !state.value.hasBegun {
                state.value.hasBegun = true
                try await begin(request, key, reader.feed)
            }
            if state.value.file == nil {
                if let count = try await reader.next() { return .held(count) }
                state.value.file = try FileHandle(forReadingFrom: held(key))
                // What was opened can be read to its end.
                try FileManager.default.removeItem(at: held(key))
            }
            let data = try state.value.file?.read(upToCount: Self.pieceBytes)
            return data.flatMap { $0.isEmpty ? nil : .bytes($0) }
        }
    }

    private func begin(_ request: DownloadRequest, _ key: String, _ feed: Feed<Int64>) async throws {
        let isFirst = feeds.withLock { feeds in
            if feeds[key] != nil { return false }
            feeds[key] = feed
            return true
        }
        if !isFirst { throw BrokenOff(errorDescription: "the same is downloaded already") }
        let tasks = await tasks()
        if isHeld(key) { return finish(key, .success(())) }
        let task = tasks.first { $0.taskDescription == key } ?? session.downloadTask(with: URLRequest(request))
        task.taskDescription = key
        feed.onCancel { [self] in
            task.suspend()
            finish(key, .failure(CancellationError()))
        }
        task.resume()
    }

    private func finish(_ key: String, _ result: Result<Void, any Error>) {
        feeds.withLock { $0.removeValue(forKey: key) }?.finish(result)
    }

    private func tasks() async -> [URLSessionTask] {
        await withCheckedContinuation { continuation in session.getAllTasks { continuation.resume(returning: $0) } }
    }

    private func held(_ key: String) -> URL {
        folder.appendingPathComponent(key.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "")
    }

    private func isHeld(_ key: String) -> Bool { FileManager.default.fileExists(atPath: held(key).path) }
}

extension BackgroundDownloads: URLSessionDownloadDelegate {
    public func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64, totalBytesWritten: Int64,
        totalBytesExpectedToWrite: Int64
    ) {
        feeds.withLock { $0[downloadTask.taskDescription ?? ""] }?.put(totalBytesWritten)
    }

    public func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        guard let key = downloadTask.taskDescription, let response = downloadTask.response as? HTTPURLResponse,
            response.statusCode == 206, Self.key(DownloadAnswer(response)) == key
        else { return }
        try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try? FileManager.default.moveItem(at: location, to: held(key))
    }

    public func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let key = task.taskDescription else { return }
        if let error { return finish(key, .failure(error.orMetered)) }
        finish(key, isHeld(key) ? .success(()) : .failure(BrokenOff(errorDescription: "the server's answer is another one by now")))
    }

    public func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
        let completion = onEventsEnd.withLock { completion in
            defer { completion = nil }
            return completion
        }
        if let completion { DispatchQueue.main.async(execute: completion) }
    }
}
