import CMote
import Foundation

/// The library itself.
public enum MoteLibrary {
    public static var version: String { String(cString: mote_version()) }

    /// A JSON object: version, commit, compiler, instruction sets, backends.
    public static func describeBuild() throws -> String { try freedText { out in try check { mote_describe_build(out, $0) } } }

    /// A JSON list of all options: name, type, range, default, help.
    public static func describeOptions() throws -> String { try freedText { out in try check { mote_describe_options(out, $0) } } }

    /// A JSON object: the CPU, the kernels there are and those that were chosen.
    public static func describeKernels() throws -> String { try freedText { out in try check { mote_describe_kernels(out, $0) } } }

    /// What `mote inspect` prints of a file, which need not work on this device, as a JSON object.
    public static func describeFile(_ url: URL) async throws -> String {
        try await blocking { try freedText { out in try check { mote_describe_file(url.path, out, $0) } } }
    }

    /// Of the process, the most seen at any call and end of a text.
    public struct Memory: Hashable, Sendable {
        public let peakRSSBytes: UInt64
        /// Anonymous memory; 0 where the system does not tell.
        public let peakPrivateBytes: UInt64
        /// Pages of mapped files, which the system can drop; likewise.
        public let peakFileBackedBytes: UInt64
    }

    public static func memory() throws -> Memory {
        var memory = mote_memory()
        memory.struct_size = UInt32(MemoryLayout<mote_memory>.size)
        try check { mote_get_memory(&memory, $0) }
        return Memory(
            peakRSSBytes: memory.peak_rss_bytes, peakPrivateBytes: memory.peak_private_bytes,
            peakFileBackedBytes: memory.peak_file_backed_bytes)
    }

    public enum LogLevel: Int32, Sendable {
        case off = 0
        case error = 1
        case info = 2
        case debug = 3
    }

    /// Lines up to `level` go to `sink` from now on, from any thread; nil: to standard error, as the variable MOTE_LOG says.
    public static func log(_ level: LogLevel, to sink: (@Sendable (LogLevel, String) -> Void)?) throws {
        guard let sink else {
            try check { mote_set_log_sink(value(level.rawValue), nil, nil, nil, $0) }
            return
        }
        let box = Unmanaged.passRetained(Box(sink))
        try check {
            mote_set_log_sink(
                value(level.rawValue),
                { box, level, line, count in
                    let sink = Unmanaged<Box<@Sendable (LogLevel, String) -> Void>>.fromOpaque(box!).takeUnretainedValue().value
                    sink(LogLevel(rawValue: level.rawValue) ?? .info, copiedText(line, count))
                },
                box.toOpaque(),
                { Unmanaged<Box<@Sendable (LogLevel, String) -> Void>>.fromOpaque($0!).release() }, $0)
        }
    }
}

/// Something that C keeps a pointer to.
final class Box<Value: Sendable>: Sendable {
    let value: Value

    init(_ value: Value) {
        self.value = value
    }
}
