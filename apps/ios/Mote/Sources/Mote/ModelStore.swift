import CMote
import Foundation

/// A file of a store, or the part of one that a download goes on with.
public struct StoredModel: Hashable, Sendable {
    /// `org/name@revision:tag`
    public let name: String
    public let url: URL
    /// Where it came from, a JSON object; "": that is not known.
    public let manifest: String
    /// That are there.
    public let bytes: UInt64
    /// Of the whole file; nil: not known.
    public let totalBytes: UInt64?
    public let isWhole: Bool
    public let lastUsed: Date

    init(_ file: mote_store_file) {
        name = String(cString: file.name)
        url = URL(fileURLWithPath: String(cString: file.path))
        manifest = String(cString: file.manifest)
        bytes = file.bytes
        totalBytes = file.total_bytes == 0 ? nil : file.total_bytes
        isWhole = file.is_whole != 0
        lastUsed = Date(timeIntervalSince1970: TimeInterval(file.last_used_s))
    }
}

/// How a file is downloaded.
public struct DownloadOptions: Hashable, Sendable {
    /// Another hub than https://huggingface.co.
    public var endpoint: String?
    /// For models of the hub that are private or gated, or for the server of an URL.
    public var token: String?
    /// Of the file at an URL, 64 hexadecimal digits; the hub has its own.
    public var sha256: String?
    /// A file may come over a metered network too.
    public var allowsMetered: Bool
    /// That stay free on the disk; nil: 64 MiB.
    public var keepFreeBytes: Int64?

    public init(
        endpoint: String? = nil, token: String? = nil, sha256: String? = nil, allowsMetered: Bool = false, keepFreeBytes: Int64? = nil
    ) {
        self.endpoint = endpoint
        self.token = token
        self.sha256 = sha256
        self.allowsMetered = allowsMetered
        self.keepFreeBytes = keepFreeBytes
    }
}

/// The models of a user: a folder of files with names. May be used by any number of tasks and processes.
public final class ModelStore: Sendable {
    let handle: Handle
    private let client: any DownloadClient

    /// folder: need not exist, on Apple's systems below the app's Application Support, which the system does not clear; nil: that of
    /// MOTE_HOME, or the user's folder of caches   client: what downloads
    public init(folder: URL? = nil, client: any DownloadClient = URLSessionDownloads()) throws {
        var pointer: OpaquePointer?
        try withOptionalCString(folder?.path) { path in try check { mote_store_open(path, &pointer, $0) } }
        handle = Handle("store", pointer, close: mote_store_close)
        self.client = client
    }

    public func close() { handle.close() }

    /// Those of a name, parts included, without a tag all of the model; of nil all that there are.
    /// Errors: ``MoteError`` with the code `fileNotFound` and the closest name
    public func list(_ name: String? = nil) async throws -> [StoredModel] {
        try await blocking { [handle] in
            try withOptionalCString(name) { name in try handle.files { mote_store_list($0, name, $1, $2) } }
        }
    }

    /// The file of a name, for ``Model/init(contentsOf:options:onProgress:)``; it is noted as used now. No network is needed.
    /// Errors: ``MoteError`` with the codes `fileNotFound` if it has to be downloaded, `invalidArgument` naming the files if there are several
    public func find(_ name: String) async throws -> URL {
        try await blocking { [handle] in
            URL(fileURLWithPath: try freedText { out in try handle.call { mote_store_find($0, name, out, $1) } })
        }
    }

    /// Deletes the files of a name, parts too, and returns how many bytes that freed.
    /// Errors: ``MoteError`` with the code `invalidState` while one is downloaded
    @discardableResult
    public func remove(_ name: String) async throws -> UInt64 {
        try await blocking { [handle] in
            var freed: UInt64 = 0
            try handle.call { mote_store_remove($0, name, &freed, $1) }
            return freed
        }
    }

    /// Deletes files, those first that were used longest ago, until all take at most so many bytes. What is downloaded stays, and but on
    /// iOS what is open.
    @discardableResult
    public func evict(maxBytes: UInt64) async throws -> [StoredModel] {
        try await blocking { [handle] in try handle.files { mote_store_evict($0, maxBytes, $1, $2) } }
    }

    /// Downloads a file as the stream is read, or goes on with what an earlier download has left. Cancelling the task ends it; what has
    /// come stays.
    ///
    /// what: a name of the hub, or the URL of a .mote file   isMetered: asked often whether the network is metered now, beside what the
    /// client finds
    /// Errors: ``MoteError`` where it cannot be had, arrived damaged or has no room, with the code `invalidState` on a metered network, and
    /// those of opening a model for a file that this device cannot run, as early as its first bytes tell it
    public func download(
        _ what: String, options: DownloadOptions = DownloadOptions(), isMetered: @escaping @Sendable () -> Bool = { false }
    ) -> AsyncThrowingStream<DownloadProgress, any Error> {
        let download = Download(handle, what, options, client, isMetered)
        return AsyncThrowingStream { try await download.next() }
    }

    /// Downloads a file and returns where it is, for ``Model/init(contentsOf:options:onProgress:)``.
    public func get(
        _ what: String, options: DownloadOptions = DownloadOptions(), onProgress: @Sendable (DownloadProgress) -> Void = { _ in },
        isMetered: @escaping @Sendable () -> Bool = { false }
    ) async throws -> URL {
        for try await progress in download(what, options: options, isMetered: isMetered) {
            onProgress(progress)
            if progress.isDone, let url = progress.url { return url }
        }
        throw CancellationError()
    }
}

extension Handle {
    fileprivate func files(
        _ call: (OpaquePointer, UnsafeMutablePointer<OpaquePointer?>, UnsafeMutablePointer<mote_error>) -> mote_error_code
    ) throws -> [StoredModel] {
        let files = try opened("list of files", close: mote_store_files_close, call)
        let pointer = try files.pointer()
        return try withExtendedLifetime(files) {
            try (0..<mote_store_files_count(pointer)).map { index in
                var file = mote_store_file()
                file.struct_size = UInt32(MemoryLayout<mote_store_file>.size)
                try check { mote_store_files_get(pointer, index, &file, $0) }
                return StoredModel(file)
            }
        }
    }
}
