import CMote

/// What a .mote-adapter file adds to the weights of its model. Sessions keep theirs.
public final class Adapter: Sendable {
    let handle: Handle

    init(_ model: Handle, _ path: String) throws {
        handle = try model.opened("adapter", close: mote_adapter_close) { mote_adapter_open($0, path, nil, $1, $2) }
    }

    /// A JSON object: name, path, bytes.
    public func describe() throws -> String {
        try freedText { out in try handle.call { mote_adapter_describe($0, out, $1) } }
    }

    public func close() { handle.close() }
}
