import CMote
import Foundation

/// A model file, opened. May be used by any number of tasks; what was opened with it may outlive it.
public final class Model: Sendable {
    let handle: Handle

    /// options: those of a model   onProgress: told 0..1 by the thread that opens
    /// Errors: ``MoteError`` that names the file and what is wrong with it; `CancellationError`
    public init(
        contentsOf url: URL, options: Options = [:], onProgress: @escaping @Sendable (Double) -> Void = { _ in }
    ) async throws {
        handle = try await Self.open(options, onProgress) { mote_model_open(url.path, $0, $1, $2) }
    }

    /// A part of an open file. The descriptor may be closed after the call. length: nil: to the end
    public init(
        fileDescriptor: Int32, offset: Int64 = 0, length: Int64? = nil, options: Options = [:],
        onProgress: @escaping @Sendable (Double) -> Void = { _ in }
    ) async throws {
        handle = try await Self.open(options, onProgress) {
            mote_model_open_fd(fileDescriptor, offset, length ?? -1, $0, $1, $2)
        }
    }

    private typealias Open = @Sendable (
        OpaquePointer, UnsafeMutablePointer<OpaquePointer?>, UnsafeMutablePointer<mote_error>
    ) -> mote_error_code

    private static func open(
        _ options: Options, _ onProgress: @escaping @Sendable (Double) -> Void, _ open: @escaping Open
    ) async throws -> Handle {
        let opening = Opening(onProgress)
        usesCoreAI
        return try await blocking(cancel: { opening.isCancelled.withLock { $0 = true } }) {
            try options.withHandle(.model) { options in
                try check {
                    mote_options_set_progress(
                        options, { Unmanaged<Opening>.fromOpaque($0!).takeUnretainedValue().progress($1) },
                        Unmanaged.passUnretained(opening).toOpaque(), $0)
                }
                var model: OpaquePointer?
                try withExtendedLifetime(opening) { try check { open(options, &model, $0) } }
                return Handle("model", model, close: mote_model_close)
            }
        }
    }

    private final class Opening: Sendable {
        let isCancelled = Locked(false)
        private let onProgress: @Sendable (Double) -> Void

        init(_ onProgress: @escaping @Sendable (Double) -> Void) {
            self.onProgress = onProgress
        }

        func progress(_ fraction: Double) -> Int32 {
            onProgress(fraction)
            return isCancelled.withLock { $0 } ? 1 : 0
        }
    }

    /// What was opened with it lives on. Nothing happens if it is closed already.
    public func close() { handle.close() }

    public var isClosed: Bool { handle.isClosed }

    public struct Info: Hashable, Sendable {
        public let vocabularySize: Int
        public let maxContextLength: Int
        /// nil: none
        public let bosTokenID: Int32?
        public let hasTokenizer: Bool
        public let hasChatTemplate: Bool
        public let fileBytes: UInt64
        public let weightBytes: UInt64
        /// Sessions can be opened.
        public let generates: Bool
        /// Embedders can.
        public let embeds: Bool
    }

    public var info: Info {
        get throws {
            var info = mote_model_info()
            info.struct_size = UInt32(MemoryLayout<mote_model_info>.size)
            try handle.call { mote_model_get_info($0, &info, $1) }
            return Info(
                vocabularySize: Int(info.vocab_size), maxContextLength: Int(info.max_position_embeddings),
                bosTokenID: info.bos_token_id < 0 ? nil : info.bos_token_id, hasTokenizer: info.has_tokenizer != 0,
                hasChatTemplate: info.has_chat_template != 0, fileBytes: info.file_bytes, weightBytes: info.weight_bytes,
                generates: info.generates != 0, embeds: info.embeds != 0)
        }
    }

    /// Everything that `mote inspect` prints, as a JSON object.
    public func describe() throws -> String {
        try freedText { out in try handle.call { mote_model_describe($0, out, $1) } }
    }

    /// generation_config.json of the checkpoint.
    public func generationConfig() throws -> String {
        try freedText { out in try handle.call { mote_model_generation_config($0, out, $1) } }
    }

    /// "" if the file has none.
    public func chatTemplate() throws -> String {
        try freedText { out in try handle.call { mote_model_chat_template($0, out, nil, $1) } }
    }

    /// Checks the checksums of the whole file.
    public func checkSegments() async throws {
        try await blocking { [handle] in try handle.call { mote_model_check_segments($0, $1) } }
    }

    /// Gives the memory of the mapped file back to the system, which reads pages again when a call needs them: for an app that leaves the
    /// screen or is told that memory is short. Sessions keep their caches, and may run meanwhile.
    public func releasePages() throws { try handle.call { mote_model_release_pages($0, $1) } }

    /// addSpecial: BOS and such, as the tokenizer asks   parseSpecial: special tokens that the text spells become their ids
    public func tokens(of text: String, addSpecial: Bool = true, parseSpecial: Bool = true) throws -> [Int32] {
        try text.withCBytes { text, bytes in
            try list { ids, room, count in
                try handle.call { mote_tokenize($0, text, bytes, addSpecial ? 1 : 0, parseSpecial ? 1 : 0, ids, room, count, $1) }
            }
        }
    }

    public func text(of ids: [Int32], skipSpecial: Bool = true) throws -> String {
        var start: UnsafeMutablePointer<CChar>?
        var count = 0
        defer { mote_string_free(start) }
        try handle.call { mote_detokenize($0, ids, ids.count, skipSpecial ? 1 : 0, &start, &count, $1) }
        return copiedText(start, count)
    }

    /// options: those of a session
    public func session(options: Options = [:]) async throws -> Session {
        try await blocking { [self] in try Session.open(self, options) }
    }

    /// A conversation in a session of its own.
    /// instructions: the system message   options: those of a session
    public func chat(instructions: String? = nil, tools: [Tool] = [], options: Options = [:]) async throws -> Chat {
        try await blocking { [self] in
            let chat = try Chat(self, Session.open(self, options), ownsSession: true)
            if !tools.isEmpty { try chat.set(.tools, "[" + tools.map(\.json).joined(separator: ",") + "]") }
            if let instructions { try chat.append(["role": "system", "content": .text(instructions)]) }
            return chat
        }
    }

    /// A conversation in a session that there is, which the caller closes.
    public func chat(in session: Session) throws -> Chat { try Chat(self, session, ownsSession: false) }

    /// What generated text is to follow. Errors: ``MoteError`` with the place in the source
    public func grammar(_ syntax: Grammar.Syntax, _ source: String) async throws -> Grammar {
        let isCancelled = Locked(false)
        return try await blocking(cancel: { isCancelled.withLock { $0 = true } }) { [handle] in
            try Grammar(handle, syntax, source, isCancelled)
        }
    }

    /// Errors: ``MoteError`` for an adapter of another base or one that is damaged
    public func adapter(contentsOf url: URL) async throws -> Adapter {
        try await blocking { [handle] in try Adapter(handle, url.path) }
    }

    /// maxSequences: that are computed at the same time, 0: 16   options: of sequences without a session of their own
    public func batch(maxSequences: Int32 = 0, options: Options = [:]) async throws -> Batch {
        try await blocking { [handle] in try Batch(handle, maxSequences, options) }
    }

    /// options: those of a session that say how to compute
    /// Errors: ``MoteError`` if the file gives no embeddings
    public func embedder(options: Options = [:]) async throws -> Embedder {
        try await blocking { [handle] in try Embedder(handle, options) }
    }
}
