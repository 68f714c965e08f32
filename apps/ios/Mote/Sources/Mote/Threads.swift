import Foundation

/// Threads that calls may block, which those of Swift's own pool must not be. Their stacks have room for the deepest grammars and
/// templates, for which the 512 KiB of Apple's threads are little.
final class Threads: @unchecked Sendable {
    static let shared = Threads()

    private static let stackBytes = 8 << 20
    private static let idleSeconds = 5.0

    private let condition = NSCondition()
    private var jobs: [@Sendable () -> Void] = []
    private var numIdle = 0

    func run(_ job: @escaping @Sendable () -> Void) {
        condition.lock()
        defer { condition.unlock() }
        jobs.append(job)
        if numIdle >= jobs.count {
            condition.signal()
            return
        }
        let thread = Thread { [self] in work() }
        thread.name = "mote"
        thread.stackSize = Self.stackBytes
        thread.qualityOfService = .userInitiated
        thread.start()
    }

    private func work() {
        while let job = next() { job() }
    }

    private func next() -> (@Sendable () -> Void)? {
        condition.lock()
        defer { condition.unlock() }
        numIdle += 1
        defer { numIdle -= 1 }
        let end = Date(timeIntervalSinceNow: Self.idleSeconds)
        while jobs.isEmpty {
            if !condition.wait(until: end), jobs.isEmpty { return nil }
        }
        return jobs.removeFirst()
    }
}

/// Runs a call that takes long. Where the task is cancelled meanwhile, `cancel` comes at once.
/// forget: takes a cancel back that came too late for the call
func blocking<T: Sendable>(
    cancel: @escaping @Sendable () -> Void = {}, forget: @escaping @Sendable () -> Void = {},
    _ body: @escaping @Sendable () throws -> T
) async throws -> T {
    try Task.checkCancellation()
    let watch = Watch(cancel: cancel, forget: forget)
    return try await withTaskCancellationHandler {
        try await withUnsafeThrowingContinuation { continuation in
            Threads.shared.run { continuation.resume(with: watch.run(body)) }
        }
    } onCancel: {
        watch.cancel()
    }
}

/// Cancels a call while it runs, and never after it.
private final class Watch: Sendable {
    private struct State {
        var isOver = false
        var wasCancelled = false
    }

    private let state = Locked(State())
    private let cancelCall: @Sendable () -> Void
    private let forgetCancel: @Sendable () -> Void

    init(cancel: @escaping @Sendable () -> Void, forget: @escaping @Sendable () -> Void) {
        cancelCall = cancel
        forgetCancel = forget
    }

    func cancel() {
        state.withLock { state in
            if state.isOver { return }
            state.wasCancelled = true
            cancelCall()
        }
    }

    func run<T>(_ body: () throws -> T) -> Result<T, any Error> {
        let result = Result(catching: body)
        let wasCancelled = state.withLock { state in
            state.isOver = true
            if state.wasCancelled { forgetCancel() }
            return state.wasCancelled
        }
        if case .failure(let error as MoteError) = result, error.code == .cancelled, wasCancelled {
            return .failure(CancellationError())
        }
        return result
    }
}
