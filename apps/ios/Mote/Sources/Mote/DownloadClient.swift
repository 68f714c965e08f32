import Foundation

/// What a download asks a server for.
public struct DownloadRequest: Hashable, Sendable {
    public struct Header: Hashable, Sendable {
        public let name: String
        public let value: String

        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    public let url: URL
    public let headers: [Header]
    /// A metered network may be used.
    public let allowsMetered: Bool

    public init(url: URL, headers: [Header], allowsMetered: Bool) {
        self.url = url
        self.headers = headers
        self.allowsMetered = allowsMetered
    }
}

/// What a server answers.
public struct DownloadAnswer: Sendable {
    public enum Part: Sendable {
        /// The next bytes of the body.
        case bytes(Data)
        /// So many bytes of the body have come and are held elsewhere; they follow when all have come.
        case held(Int64)
    }

    public let status: Int
    public let headers: [DownloadRequest.Header]
    /// Throws where it comes to no proper end.
    public var body: AsyncThrowingStream<Part, any Error>

    public init(status: Int, headers: [DownloadRequest.Header], body: AsyncThrowingStream<Part, any Error>) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// The value of a header; nil: there is none.
    public subscript(name: String) -> String? {
        headers.first { $0.name.lowercased() == name.lowercased() }?.value
    }
}

/// The network of a ``ModelStore``, which has none of its own.
public protocol DownloadClient: Sendable {
    /// Sends a GET. Redirects are answers like others and are not followed, and no body is decoded. What runs ends with its task, and when
    /// nobody has the answer any more.
    /// Errors: ``MeteredNetworkError`` where only a metered network is there and the request does not allow it; all others, also of the
    /// body, mean that it broke off
    func answer(to request: DownloadRequest) async throws -> DownloadAnswer
}

/// A client's network is metered, which its request does not allow.
public struct MeteredNetworkError: Error {
    public init() {}
}
