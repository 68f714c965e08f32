import Dispatch
import Mote
import Observation

/// tokens a second, milliseconds, bytes
public struct BenchmarkResult: Hashable, Sendable {
    public let prefillSpeed: Double
    public let decodeSpeed: Double
    public let firstTokenMilliseconds: Double
    public let privateBytes: UInt64
    public let fileBackedBytes: UInt64
}

/// The speed of the last while of a long run.
public struct SpeedPoint: Hashable, Sendable, Identifiable {
    public let seconds: Double
    public let tokensPerSecond: Double

    public var id: Double { seconds }
}

/// What a model does on this device.
public struct Benchmark: Sendable {
    private static let fixed: Options = ["ignore_eos": true, "temperature": 0, "speculative": "off"]

    private let model: Model
    private let now: @Sendable () -> Double

    /// now: seconds of a clock that only goes forward
    public init(_ model: Model, now: @escaping @Sendable () -> Double = { Double(DispatchTime.now().uptimeNanoseconds) / 1e9 }) {
        self.model = model
        self.now = now
    }

    /// A prompt of so many tokens, then so many that are generated.
    public func run(promptTokens: Int = 256, newTokens: Int = 128) async throws -> BenchmarkResult {
        let length = Int64(promptTokens + newTokens + 1)
        let session = try await model.session(options: ["context_length": .integer(length)])
        var found: Statistics?
        let options = Self.fixed.with("max_new_tokens", .integer(Int64(newTokens)))
        for try await piece in session.pieces(after: try prompt(promptTokens), options: options) { found = piece.statistics ?? found }
        guard let found else { throw CancellationError() }
        let memory = try MoteLibrary.memory()
        return BenchmarkResult(
            prefillSpeed: Double(found.promptTokens) / found.prefillSeconds,
            decodeSpeed: Double(found.generatedTokens - 1) / found.decodeSeconds,
            firstTokenMilliseconds: found.timeToFirstTokenSeconds * 1e3, privateBytes: memory.peakPrivateBytes,
            fileBackedBytes: memory.peakFileBackedBytes)
    }

    /// Generates for so long, and tells how fast it was in each part of it: whether the device slows down.
    /// onPoint: told from this task
    public func sustained(
        seconds: Double = 600, pointEvery: Double = 5, onPoint: @MainActor (SpeedPoint) -> Void
    ) async throws {
        let session = try await model.session(options: ["context_length": 1024, "overflow": "shift"])
        let start = now()
        var (since, tokens) = (start, 0)
        let endless = Self.fixed.with("max_time", .number(seconds))
        for try await _ in session.pieces(after: try prompt(16), options: endless) {
            tokens += 1
            let time = now()
            if time - since < pointEvery { continue }
            await onPoint(SpeedPoint(seconds: time - start, tokensPerSecond: Double(tokens) / (time - since)))
            (since, tokens) = (time, 0)
        }
        try Task.checkCancellation()
    }

    private func prompt(_ count: Int) throws -> [Int32] {
        let size = try model.info.vocabularySize
        return (0..<count).map { Int32(($0 * 7 + 3) % size) }
    }
}

/// What a screen of the benchmark shows. One run at a time; another one ends it.
@MainActor
@Observable
public final class BenchmarkRuns {
    public private(set) var result: BenchmarkResult?
    public private(set) var points: [SpeedPoint] = []
    public private(set) var isRunning = false
    /// A sentence for the user.
    public private(set) var error: String?
    @ObservationIgnored private let open: @MainActor () async throws -> Benchmark
    @ObservationIgnored private var run: Task<Void, Never>?

    /// open: gives the benchmark of a model, which may take a while
    public init(_ open: @escaping @MainActor () async throws -> Benchmark) {
        self.open = open
    }

    public func measure(promptTokens: Int = 256, newTokens: Int = 128) {
        begin { runs, benchmark in
            runs.result = nil
            runs.result = try await benchmark.run(promptTokens: promptTokens, newTokens: newTokens)
        }
    }

    public func sustain(seconds: Double = 600, pointEvery: Double = 5) {
        begin { runs, benchmark in
            runs.points = []
            try await benchmark.sustained(seconds: seconds, pointEvery: pointEvery) { runs.points.append($0) }
        }
    }

    public func stop() { run?.cancel() }

    /// Waits for what runs.
    public func idle() async { await run?.value }

    /// The points as lines of a table for other programs.
    public func export() -> String {
        points.reduce("seconds,tokens_per_second\n") { $0 + "\($1.seconds),\($1.tokensPerSecond)\n" }
    }

    private func begin(_ act: @escaping @MainActor (BenchmarkRuns, Benchmark) async throws -> Void) {
        let before = run
        before?.cancel()
        isRunning = true
        error = nil
        run = Task {
            await before?.value
            isRunning = true
            do {
                try Task.checkCancellation()
                try await act(self, open())
            } catch is CancellationError {
                // As the user wants it.
            } catch {
                self.error = error.localizedDescription
            }
            isRunning = false
        }
    }
}
