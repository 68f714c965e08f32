import CMote

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
