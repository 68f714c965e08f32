import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Downloads by URLSession while the app runs. An answer that brings nothing for half a minute broke off.
public final class URLSessionDownloads: DownloadClient {
    private static let stallSeconds = 30.0

    public init() {}

    public func answer(to request: DownloadRequest) async throws -> DownloadAnswer {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = Self.stallSeconds
        let arrival = Arrival()
        let session = URLSession(configuration: configuration, delegate: arrival, delegateQueue: nil)
        let task = session.dataTask(with: URLRequest(request))
        session.finishTasksAndInvalidate()
        arrival.feed.onCancel { task.cancel() }
        task.resume()
        let reader = FeedReader(arrival.feed)
        while case .bytes = try await reader.next() {}
        guard let response = task.response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
        var answer = DownloadAnswer(response)
        answer.body = AsyncThrowingStream {
            guard case .bytes(let data) = try await reader.next() else { return nil }
            return .bytes(data)
        }
        return answer
    }
}

/// What a task of URLSession is told, in its order. Blocks the session's thread while nobody takes it.
private final class Arrival: NSObject, URLSessionDataDelegate, Sendable {
    enum Event: Sendable {
        case response
        case bytes(Data)
    }

    let feed = Feed<Event>(burstNanoseconds: 0)

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        feed.put(.response)
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        feed.put(.bytes(data))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        feed.finish(error.map { .failure($0.orMetered) } ?? .success(()))
    }
}

/// Ends what fills the feed when nobody has it any more.
final class FeedReader<Element: Sendable>: Sendable {
    let feed: Feed<Element>

    init(_ feed: Feed<Element>) {
        self.feed = feed
    }

    deinit { feed.cancel() }

    func next() async throws -> Element? {
        try await withTaskCancellationHandler { try await feed.next() } onCancel: { feed.cancel() }
    }
}

extension URLRequest {
    init(_ request: DownloadRequest) {
        self.init(url: request.url, cachePolicy: .reloadIgnoringLocalCacheData)
        for header in request.headers { setValue(header.value, forHTTPHeaderField: header.name) }
        #if canImport(Darwin)
            allowsExpensiveNetworkAccess = request.allowsMetered
            allowsConstrainedNetworkAccess = request.allowsMetered
        #endif
    }
}

extension DownloadAnswer {
    init(_ response: HTTPURLResponse) {
        let headers = response.allHeaderFields.map { DownloadRequest.Header("\($0.key)", "\($0.value)") }
        self.init(status: response.statusCode, headers: headers, body: AsyncThrowingStream { nil })
    }
}

extension Error {
    /// URLSession's error, or what it means.
    var orMetered: any Error {
        #if canImport(Darwin)
            let reason = (self as? URLError)?.networkUnavailableReason
            if reason == .expensive || reason == .constrained { return MeteredNetworkError() }
        #endif
        return self
    }
}
