import CMote

/// Gives one vector a text. Takes one call at a time.
public final class Embedder: Sendable {
    private let handle: Handle

    init(_ model: Handle, _ options: Options) throws {
        handle = try options.withHandle(.session) { options in
            try model.opened("embedder", close: mote_embedder_close, cancel: mote_embedder_cancel) {
                mote_embedder_open($0, options, $1, $2)
            }
        }
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
