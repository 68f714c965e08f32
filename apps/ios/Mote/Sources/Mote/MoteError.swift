import CMote
import Foundation

/// What Mote refuses or fails at. A task that is cancelled gets a `CancellationError` instead.
public struct MoteError: Error, Hashable, Sendable {
    /// A number of `mote_error_code`, or ``closed``.
    public struct Code: RawRepresentable, Hashable, Sendable {
        public let rawValue: Int32

        public init(rawValue: Int32) {
            self.rawValue = rawValue
        }

        /// A call on what was closed. The C API has no such code.
        public static let closed = Code(rawValue: -1)
        public static let fileNotFound = Code(rawValue: 10)
        public static let fileUnreadable = Code(rawValue: 11)
        public static let fileChanged = Code(rawValue: 12)
        public static let fileUnwritable = Code(rawValue: 13)
        public static let invalidProgram = Code(rawValue: 20)
        public static let unsupportedVersion = Code(rawValue: 21)
        public static let unsupportedOp = Code(rawValue: 22)
        public static let invalidSession = Code(rawValue: 23)
        public static let unsupportedBackend = Code(rawValue: 24)
        public static let invalidTokenizer = Code(rawValue: 30)
        public static let template = Code(rawValue: 31)
        public static let invalidArgument = Code(rawValue: 40)
        public static let contextFull = Code(rawValue: 41)
        public static let invalidState = Code(rawValue: 42)
        public static let outOfMemory = Code(rawValue: 50)
        public static let cancelled = Code(rawValue: 60)
        public static let `internal` = Code(rawValue: 70)

        /// Its name in the C API, such as "FILE_NOT_FOUND".
        public var name: String {
            if self == .closed { return "CLOSED" }
            return mote_error_name(value(rawValue)).map(String.init(cString:)) ?? "\(rawValue)"
        }
    }

    public let code: Code
    /// One sentence, that of the C API.
    public let message: String

    public init(code: Code, message: String) {
        self.code = code
        self.message = message
    }
}

extension MoteError: LocalizedError, CustomStringConvertible {
    public var errorDescription: String? { message }
    public var description: String { "\(code.name): \(message)" }
}

/// A value of an enum of the C API. They are open: every number is one.
func value<T: RawRepresentable>(_ number: T.RawValue) -> T { T(rawValue: number)! }

/// Throws what a call of the C API gives.
func check(_ call: (UnsafeMutablePointer<mote_error>) -> mote_error_code) throws {
    try withUnsafeTemporaryAllocation(of: mote_error.self, capacity: 1) { buffer in
        let error = buffer.baseAddress!
        error.pointee.struct_size = UInt32(MemoryLayout<mote_error>.size)
        let code = call(error)
        if code.rawValue == 0 { return }
        let message = UnsafeRawPointer(error).advanced(by: MemoryLayout<mote_error>.offset(of: \.message)!)
        throw MoteError(
            code: MoteError.Code(rawValue: code.rawValue),
            message: String(cString: message.assumingMemoryBound(to: CChar.self)))
    }
}

/// Where a call puts a text that has to be freed.
typealias TextOut = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>

func freedText(_ call: (TextOut) throws -> Void) rethrows -> String {
    var text: UnsafeMutablePointer<CChar>?
    defer { mote_string_free(text) }
    try call(&text)
    return text.map { String(cString: $0) } ?? ""
}

/// A text of the C API with its length, which may have NULs.
func copiedText(_ start: UnsafePointer<CChar>?, _ count: Int) -> String {
    guard let start, count > 0 else { return "" }
    return start.withMemoryRebound(to: UInt8.self, capacity: count) {
        String(decoding: UnsafeBufferPointer(start: $0, count: count), as: UTF8.self)
    }
}

extension String {
    /// Its bytes and how many they are, as the C API takes them.
    func withCBytes<T>(_ body: (UnsafePointer<CChar>, Int) throws -> T) rethrows -> T {
        var copy = self
        return try copy.withUTF8 { bytes in
            guard let start = bytes.baseAddress else { return try withUnsafePointer(to: 0) { try body($0, 0) } }
            return try start.withMemoryRebound(to: CChar.self, capacity: bytes.count) { try body($0, bytes.count) }
        }
    }
}

/// nil: a null pointer
func withOptionalCString<T>(_ text: String?, _ body: (UnsafePointer<CChar>?) throws -> T) rethrows -> T {
    guard let text else { return try body(nil) }
    return try text.withCString(body)
}

/// What a call writes to as much room as it is given, and says how much there is.
func list(_ call: (UnsafeMutablePointer<Int32>?, Int, UnsafeMutablePointer<Int>) throws -> Void) throws -> [Int32] {
    var count = 0
    var room = 256
    while true {
        let ids = try [Int32](unsafeUninitializedCapacity: room) { buffer, size in
            try call(buffer.baseAddress, room, &count)
            size = min(count, room)
        }
        if count <= room { return ids }
        room = count
    }
}
