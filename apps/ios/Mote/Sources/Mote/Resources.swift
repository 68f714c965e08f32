import CMote
import Foundation

/// A JSON Schema, regular expression or grammar, compiled for a model's vocabulary. Generations keep theirs.
public final class Grammar: Sendable {
    public enum Syntax: Int32, Sendable {
        case jsonSchema = 0
        case regex = 1
        case gbnf = 2
        case lark = 3
    }

    let handle: Handle

    init(_ model: Handle, _ syntax: Syntax, _ source: String, _ isCancelled: Locked<Bool>) throws {
        let vocabulary = try model.opened("vocabulary", close: mote_vocabulary_close) { mote_model_vocabulary($0, $1, $2) }
        handle = try source.withCBytes { source, bytes in
            var options = mote_grammar_options()
            options.struct_size = UInt32(MemoryLayout<mote_grammar_options>.size)
            options.syntax = value(syntax.rawValue)
            options.source = source
            options.source_bytes = bytes
            options.is_cancelled = { Unmanaged<Locked<Bool>>.fromOpaque($0!).takeUnretainedValue().withLock { $0 } ? 1 : 0 }
            options.user_data = Unmanaged.passUnretained(isCancelled).toOpaque()
            return try withExtendedLifetime(isCancelled) {
                try vocabulary.opened("grammar", close: mote_grammar_close) { mote_grammar_open($0, &options, $1, $2) }
            }
        }
    }

    public func close() { handle.close() }
}

/// What a .mote-adapter file adds to the weights of its model. Sessions keep theirs.
public final class Adapter: Sendable {
    let handle: Handle

    init(_ handle: Handle) {
        self.handle = handle
    }

    /// A JSON object: name, path, bytes.
    public func describe() throws -> String {
        try freedText { out in try handle.call { mote_adapter_describe($0, out, $1) } }
    }

    public func close() { handle.close() }
}

/// Keeps what sessions have computed of texts, for other sessions whose text begins alike: an option of sessions.
public final class PrefixCache: Sendable {
    let handle: Handle

    /// maxBytes: that it keeps
    public init(maxBytes: UInt64) throws {
        var pointer: OpaquePointer?
        try check { mote_prefix_cache_open(maxBytes, &pointer, $0) }
        handle = Handle("prefix cache", pointer, close: mote_prefix_cache_close)
    }

    public struct Info: Hashable, Sendable {
        /// Memory that it holds; sessions may use the same.
        public let bytes: UInt64
        /// Texts that it knows.
        public let snapshots: Int
        public let hits: Int
        public let misses: Int
        /// That were not computed again.
        public let reusedTokens: Int
    }

    public var info: Info {
        get throws {
            var info = mote_prefix_cache_info()
            info.struct_size = UInt32(MemoryLayout<mote_prefix_cache_info>.size)
            try handle.call { mote_prefix_cache_get_info($0, &info, $1) }
            return Info(
                bytes: info.bytes, snapshots: Int(info.snapshots), hits: Int(info.hits), misses: Int(info.misses),
                reusedTokens: Int(info.reused_tokens))
        }
    }

    /// Gives its memory back, when the system asks for some.
    public func clear() throws { try handle.call { mote_prefix_cache_clear($0, $1) } }

    public func close() { handle.close() }
}

/// Texts that decode together: the weights are read once for all of them, and each gets what it would get alone. Sessions join it:
/// ``Session/join(_:)``. Closing it ends them, as cancelled.
public final class Batch: Sendable {
    let handle: Handle

    init(_ handle: Handle) {
        self.handle = handle
    }

    /// That are not over.
    public var numSequences: Int { (try? handle.pointer()).map { Int(mote_batch_num_sequences($0)) } ?? 0 }

    public func close() { handle.close() }
}

/// Gives one vector a text. Takes one call at a time.
public final class Embedder: Sendable {
    private let handle: Handle

    init(_ handle: Handle) {
        self.handle = handle
    }

    /// prompt: the name of one of the file's prompts; nil: its default, if it has one   dimensions: the first ones; nil: all
    /// refusesLong: an error for a text that is too long, whose end is cut off else
    public func embed(
        _ texts: [String], prompt: String? = nil, dimensions: Int32? = nil, refusesLong: Bool = false
    ) async throws -> [[Float]] {
        try await blocking(cancel: { [handle] in handle.cancel() }) { [handle] in
            var options = mote_embed_options()
            options.struct_size = UInt32(MemoryLayout<mote_embed_options>.size)
            options.dimensions = dimensions ?? 0
            options.refuse_long = refusesLong ? 1 : 0
            return try withOptionalCString(prompt) { name in
                options.prompt_name = name
                return try Self.embed(handle, texts, &options)
            }
        }
    }

    private static func embed(_ handle: Handle, _ texts: [String], _ options: inout mote_embed_options) throws -> [[Float]] {
        var size = 0
        try handle.call { mote_embedder_dimensions($0, &options, &size, $1) }
        let bytes = texts.map { Array($0.utf8CString) }
        let starts = bytes.map { UnsafeMutablePointer<CChar>.allocate(capacity: $0.count) }
        defer { starts.forEach { $0.deallocate() } }
        let inputs = zip(starts, bytes).map { start, bytes in
            start.initialize(from: bytes, count: bytes.count)
            return mote_embed_input(text: start, text_bytes: bytes.count - 1, ids: nil, num_ids: 0)
        }
        var vectors = [Float](repeating: 0, count: size * texts.count)
        try handle.call { mote_embedder_embed($0, inputs, inputs.count, &options, &vectors, nil, $1) }
        return (0..<texts.count).map { Array(vectors[$0 * size..<($0 + 1) * size]) }
    }

    public func close() { handle.close() }
}
