import Foundation

/// What a thread makes step by step and a task takes. The thread is a few steps ahead, so that a fast one costs no change of threads
/// a step, and waits then.
final class Feed<Element: Sendable>: @unchecked Sendable {
    private static var stepsAhead: Int { 64 }

    private let burstNanoseconds: UInt64
    private let condition = NSCondition()
    private var steps: [Element] = []
    private var numTaken = 0
    private var lastTime: UInt64 = 0
    private var waiting: UnsafeContinuation<Void, Never>?
    private var end: Result<Void, any Error>?
    private var isCancelled = false
    private var cancelSource: (@Sendable () -> Void)?

    /// burstNanoseconds: steps that come faster than this after each other, such as those that a grammar forces, are told some at a time,
    /// and the last of them with the next one: to wake a task for each takes longer
    init(burstNanoseconds: UInt64 = 20_000) {
        self.burstNanoseconds = burstNanoseconds
    }

    /// Called at once if it is cancelled already; not under a lock.
    func onCancel(_ cancel: @escaping @Sendable () -> Void) {
        let isLate = locked {
            cancelSource = cancel
            return isCancelled
        }
        if isLate { cancel() }
    }

    /// Returns whether more is wanted.
    @discardableResult
    func put(_ step: Element) -> Bool {
        let time = DispatchTime.now().uptimeNanoseconds
        condition.lock()
        while steps.count - numTaken >= Self.stepsAhead && !isCancelled { condition.wait() }
        steps.append(step)
        let wantsMore = !isCancelled
        var task: UnsafeContinuation<Void, Never>?
        if time - lastTime >= burstNanoseconds || steps.count - numTaken >= Self.stepsAhead / 2 { swap(&task, &waiting) }
        lastTime = time
        condition.unlock()
        task?.resume()
        return wantsMore
    }

    func finish(_ result: Result<Void, any Error>) {
        let task = locked {
            end = result
            cancelSource = nil
            defer { waiting = nil }
            return waiting
        }
        task?.resume()
    }

    /// Returns whether it had not ended.
    @discardableResult
    func cancel() -> Bool {
        let (cancel, wasGoing) = locked {
            isCancelled = true
            condition.broadcast()
            return (cancelSource, end == nil)
        }
        cancel?()
        return wasGoing
    }

    /// What is there already; nil: the task has to wait, or there is an end.
    func ready() -> Element? {
        condition.lock()
        defer { condition.unlock() }
        return isCancelled ? nil : take()
    }

    /// For one task at a time. A task that is cancelled gets an error when the thread has ended.
    func next() async throws -> Element? {
        while true {
            if let result = try poll() { return result.step }
            await withUnsafeContinuation { continuation in
                let isReady = locked {
                    if !steps.isEmpty || end != nil { return true }
                    waiting = continuation
                    return false
                }
                if isReady { continuation.resume() }
            }
        }
    }

    /// A step, or none at the end; nil: neither has come.
    private func poll() throws -> (step: Element?, Void)? {
        condition.lock()
        defer { condition.unlock() }
        if isCancelled {
            // Only the end matters.
            steps.removeAll()
            numTaken = 0
            if end != nil { throw CancellationError() }
            return nil
        }
        if let step = take() { return (step, ()) }
        guard let end else { return nil }
        try end.get()
        return (nil, ())
    }

    private func take() -> Element? {
        if numTaken == steps.count { return nil }
        let step = steps[numTaken]
        numTaken += 1
        if numTaken == steps.count || numTaken == Self.stepsAhead {
            steps.removeFirst(numTaken)
            numTaken = 0
            // Once for all of them: a thread that is woken for each makes no headway.
            condition.signal()
        }
        return step
    }

    private func locked<T>(_ body: () -> T) -> T {
        condition.lock()
        defer { condition.unlock() }
        return body()
    }
}

/// Counts streams that nobody reads any more and that have not ended yet, for which the next call waits.
final class Gate: @unchecked Sendable {
    private let condition = NSCondition()
    private var numEnding = 0

    func enter() {
        condition.lock()
        numEnding += 1
        condition.unlock()
    }

    func leave() {
        condition.lock()
        numEnding -= 1
        condition.broadcast()
        condition.unlock()
    }

    func wait() {
        condition.lock()
        while numEnding > 0 { condition.wait() }
        condition.unlock()
    }
}

/// A stream of what `run` puts into the feed, which begins when it is first asked. It ends, as cancelled, with its task or when
/// nobody has it any more.
func steps<Element: Sendable>(
    _ gate: Gate, run: @escaping @Sendable (Feed<Element>) throws -> Void
) -> AsyncThrowingStream<Element, any Error> {
    let reader = Reader(gate, run)
    return AsyncThrowingStream { try await reader.next() }
}

private final class Reader<Element: Sendable>: Sendable {
    private struct State {
        var hasBegun = false
        var isForgotten = false
        var hasEnded = false
    }

    private let feed = Feed<Element>()
    private let gate: Gate
    private let begin: Locked<(@Sendable (Feed<Element>) throws -> Void)?>
    private let state = Locked(State())

    init(_ gate: Gate, _ run: @escaping @Sendable (Feed<Element>) throws -> Void) {
        self.gate = gate
        begin = Locked(run)
    }

    deinit {
        let state = state
        let isEnding = state.withLock { state in
            state.isForgotten = state.hasBegun && !state.hasEnded
            if state.isForgotten { gate.enter() }
            return state.isForgotten
        }
        if isEnding { feed.cancel() }
    }

    func next() async throws -> Element? {
        if let step = feed.ready() { return step }
        let run = begin.withLock { run in
            defer { run = nil }
            return run
        }
        if let run { start(run) }
        return try await withTaskCancellationHandler {
            try await feed.next()
        } onCancel: {
            feed.cancel()
        }
    }

    private func start(_ run: @escaping @Sendable (Feed<Element>) throws -> Void) {
        state.withLock { $0.hasBegun = true }
        Threads.shared.run { [feed, gate, state] in
            gate.wait()
            let result = Result { try run(feed) }
            let wasForgotten = state.withLock { state in
                state.hasEnded = true
                return state.isForgotten
            }
            if wasForgotten { gate.leave() }
            feed.finish(result)
        }
    }
}
