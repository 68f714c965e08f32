import CMote
import Foundation

/// A value that several threads read and change.
final class Locked<Value>: @unchecked Sendable {
    private let lock = NSLock()
    private var value: Value

    init(_ value: Value) {
        self.value = value
    }

    func withLock<T>(_ body: (inout Value) throws -> T) rethrows -> T {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value)
    }
}

/// A handle of the C API, which is a number. It is closed once, by ``close()`` or with the last reference to it.
final class Handle: Sendable {
    private let kind: String
    private let number: Locked<UInt>
    private let closeHandle: @Sendable (OpaquePointer?) -> Void
    private let cancelHandle: @Sendable (OpaquePointer?) -> Void

    /// kind: in words, for errors   cancel: ends what runs on it
    init(
        _ kind: String, _ pointer: OpaquePointer?, close: @escaping @Sendable (OpaquePointer?) -> Void,
        cancel: @escaping @Sendable (OpaquePointer?) -> Void = { _ in }
    ) {
        self.kind = kind
        number = Locked(UInt(bitPattern: pointer))
        closeHandle = close
        cancelHandle = cancel
    }

    deinit {
        // What runs on it goes on for others, such as a generation whose session was forgotten.
        if let pointer = take() { closeHandle(pointer) }
    }

    var isClosed: Bool { number.withLock { $0 == 0 } }

    /// Ends what runs on it, as cancelled. Nothing happens if it is closed already.
    func close() {
        guard let pointer = take() else { return }
        cancelHandle(pointer)
        closeHandle(pointer)
    }

    func cancel() {
        cancelHandle(OpaquePointer(bitPattern: number.withLock { $0 }))
    }

    func pointer() throws -> OpaquePointer {
        guard let pointer = OpaquePointer(bitPattern: number.withLock { $0 }) else { throw closed }
        return pointer
    }

    /// Calls the C API with it. A call that a close overtakes fails as one after it.
    func call(_ body: (OpaquePointer, UnsafeMutablePointer<mote_error>) -> mote_error_code) throws {
        let pointer = try pointer()
        do {
            try withExtendedLifetime(self) { try check { body(pointer, $0) } }
        } catch let error as MoteError where error.code == .invalidArgument && isClosed {
            throw closed
        }
    }

    /// A handle that is opened with this one.
    func opened(
        _ kind: String, close: @escaping @Sendable (OpaquePointer?) -> Void,
        cancel: @escaping @Sendable (OpaquePointer?) -> Void = { _ in },
        _ open: (OpaquePointer, UnsafeMutablePointer<OpaquePointer?>, UnsafeMutablePointer<mote_error>) -> mote_error_code
    ) throws -> Handle {
        var pointer: OpaquePointer?
        try call { open($0, &pointer, $1) }
        return Handle(kind, pointer, close: close, cancel: cancel)
    }

    private var closed: MoteError { MoteError(code: .closed, message: "the \(kind) is closed") }

    private func take() -> OpaquePointer? {
        number.withLock { number in
            defer { number = 0 }
            return OpaquePointer(bitPattern: number)
        }
    }
}
