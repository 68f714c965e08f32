import CMote

/// Texts that decode together: the weights are read once for all of them, and each gets what it would get alone. Sessions join it:
/// ``Session/join(_:)``. Closing it ends them, as cancelled.
public final class Batch: Sendable {
    let handle: Handle

    init(_ model: Handle, _ maxSequences: Int32, _ options: Options) throws {
        handle = try options.withHandle(.session) { options in
            try model.opened("batch", close: mote_batch_close) { mote_batch_open($0, maxSequences, options, $1, $2) }
        }
    }

    /// That are not over.
    public var numSequences: Int { (try? handle.pointer()).map { Int(mote_batch_num_sequences($0)) } ?? 0 }

    public func close() { handle.close() }
}
