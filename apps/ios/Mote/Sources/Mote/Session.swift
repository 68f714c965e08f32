import CMote
import Foundation

/// One text that a model reads and goes on with. Takes one call at a time: another one meanwhile is a ``MoteError`` with the code
/// `invalidState`. Cancelling a task ends its call within an instruction of the model; the session keeps what it had read.
public final class Session: Sendable {
    let handle: Handle
    let gate = Gate()
    private let vocabularySize: Int
    /// Kept from being forgotten, which would end the texts.
    private let joined = Locked<Batch?>(nil)

    private init(_ handle: Handle, _ vocabularySize: Int) {
        self.handle = handle
        self.vocabularySize = vocabularySize
    }

    static func open(_ model: Model, _ options: Options) throws -> Session {
        let handle = try options.withHandle(.session) { options in
            try model.handle.opened("session", close: mote_session_close, cancel: mote_session_cancel) {
                mote_session_open($0, options, $1, $2)
            }
        }
        return Session(handle, try model.info.vocabularySize)
    }

    /// Ends what runs on it, as cancelled. Nothing happens if it is closed already.
    public func close() { handle.close() }

    public var isClosed: Bool { handle.isClosed }

    /// The call that runs, or the next one, ends as cancelled.
    public func cancel() { handle.cancel() }

    // MARK: texts

    /// What the model writes after a prompt, whole characters at a time; where the session has tokens, it goes on from them. The text
    /// begins when the stream is first asked, is at most 64 tokens ahead of who asks, and ends when nobody has the stream any more.
    /// options: those of a generation   onDone: told at the end
    public func generate(
        _ prompt: String, options: Options = [:], onDone: (@Sendable (Statistics) -> Void)? = nil
    ) -> AsyncThrowingStream<String, any Error> {
        generation(options) { try $0.ids(of: prompt) } take: { piece, statistics in
            if let statistics { onDone?(statistics()) }
            return piece.text_bytes > 0 ? copiedText(piece.text, piece.text_bytes) : nil
        }
    }

    /// The same token by token, after ids. No ids: goes on from what the session has.
    public func pieces(after ids: [Int32], options: Options = [:]) -> AsyncThrowingStream<Piece, any Error> {
        generation(options) { _ in ids } take: { piece, statistics in
            var piece = Piece(piece)
            piece.statistics = statistics?()
            return piece
        }
    }

    private func generation<Element: Sendable>(
        _ options: Options, prompt: @escaping @Sendable (Session) throws -> [Int32],
        take: @escaping @Sendable (mote_piece, (() -> Statistics)?) -> Element?
    ) -> AsyncThrowingStream<Element, any Error> {
        steps(gate) { [self] (feed: Feed<Element>) in
            let ids = try prompt(self)
            let generation = try options.withHandle(.generation) { options in
                try handle.opened("generation", close: mote_generation_end, cancel: mote_generation_cancel) {
                    mote_generation_begin($0, ids, ids.count, options, $1, $2)
                }
            }
            feed.onCancel { generation.cancel() }
            try withExtendedLifetime(self) { try Self.run(generation, feed, take) }
        }
    }

    private static func run<Element>(
        _ generation: Handle, _ feed: Feed<Element>, _ take: (mote_piece, (() -> Statistics)?) -> Element?
    ) throws {
        var piece = mote_piece()
        piece.struct_size = UInt32(MemoryLayout<mote_piece>.size)
        repeat {
            try generation.call { mote_generation_next($0, &piece, $1) }
            let statistics = { Statistics.of { statistics in try? generation.call { mote_generation_statistics($0, statistics, $1) } } }
            if let step = take(piece, piece.finished != 0 ? statistics : nil) { feed.put(step) }
        } while piece.finished == 0
    }

    // MARK: tokens

    /// Ids of a text that the session goes on with: BOS and such only at its start.
    public func tokens(of text: String, parseSpecial: Bool = true) throws -> [Int32] {
        gate.wait()
        return try ids(of: text, parseSpecial: parseSpecial)
    }

    private func ids(of text: String, parseSpecial: Bool = true) throws -> [Int32] {
        try text.withCBytes { text, bytes in
            try list { ids, room, count in
                try handle.call { mote_session_tokenize($0, text, bytes, parseSpecial ? 1 : 0, ids, room, count, $1) }
            }
        }
    }

    /// Those at all positions.
    public var tokens: [Int32] {
        get throws {
            gate.wait()
            return try list { ids, room, count in try handle.call { mote_session_tokens($0, ids, room, count, $1) } }
        }
    }

    /// At any time, so that a long call can be watched.
    public var position: Int { (try? handle.pointer()).map { Int(mote_session_position($0)) } ?? -1 }

    public func append(_ text: String) async throws { try await append(tokens(of: text)) }

    public func append(_ ids: [Int32]) async throws {
        try await calling { mote_session_append($0, ids, ids.count, $1) }
    }

    /// Makes ids the session's tokens. Returns how many of them it had, which were not computed again.
    @discardableResult
    public func setTokens(_ ids: [Int32]) async throws -> Int {
        try await blockingCall { handle in
            var kept: Int64 = 0
            try handle.call { mote_session_set_tokens($0, ids, ids.count, &kept, $1) }
            return Int(kept)
        }
    }

    /// Forgets every position.
    public func reset() async throws { try await calling(mote_session_reset) }

    /// Goes back to the first tokens.
    public func rewind(to position: Int) async throws { try await calling { mote_session_rewind($0, Int64(position), $1) } }

    /// Goes on with another of the file's targets, such as "cpu", and keeps its tokens.
    public func move(to backend: String) async throws { try await calling { mote_session_move_to($0, backend, $1) } }

    /// The file's target that computes.
    public var backend: String {
        get throws {
            gate.wait()
            return try freedText { out in try handle.call { mote_session_get_backend($0, out, nil, $1) } }
        }
    }

    /// Why the session left another target by itself; "": it did not.
    public var movedBecause: String {
        get throws {
            gate.wait()
            var reason = ""
            _ = try freedText { backend in
                reason = try freedText { out in try handle.call { mote_session_get_backend($0, backend, out, $1) } }
            }
            return reason
        }
    }

    // MARK: numbers

    /// Reads ids and gives the logits after the last one.
    public func prefill(_ ids: [Int32]) async throws -> [Float] {
        try await floats(vocabularySize) { mote_session_prefill($0, ids, ids.count, $1, $2) }
    }

    public func decode(_ id: Int32) async throws -> [Float] {
        try await floats(vocabularySize) { mote_session_decode($0, id, $1, $2) }
    }

    /// After the last token.
    public func logits() async throws -> [Float] { try await floats(vocabularySize, mote_session_logits) }

    /// Reads ids and gives the logits after each, one row after another.
    public func verify(_ ids: [Int32]) async throws -> [Float] {
        try await floats(vocabularySize * ids.count) { mote_session_verify($0, ids, ids.count, $1, $2) }
    }

    /// Reads ids and gives the logarithm of the probability of each but the first.
    public func score(_ ids: [Int32]) async throws -> [Float] {
        try await floats(max(0, ids.count - 1)) { mote_session_score($0, ids, ids.count, $1, $2) }
    }

    /// A text that beam search found, the likeliest first.
    public struct Beam: Hashable, Sendable {
        public let ids: [Int32]
        public let score: Float
    }

    /// options: those of a beam search
    public func beamSearch(after ids: [Int32], options: Options = [:]) async throws -> [Beam] {
        try await blockingCall { handle in
            let beams = try options.withHandle([.beamSearch, .generation]) { options in
                try handle.opened("set of beams", close: mote_beams_close) {
                    mote_session_beam_search($0, ids, ids.count, options, $1, $2)
                }
            }
            let pointer = try beams.pointer()
            return try withExtendedLifetime(beams) {
                try (0..<mote_beams_count(pointer)).map { index in
                    var start: UnsafePointer<Int32>?
                    var count = 0
                    var score: Float = 0
                    try check { mote_beams_get(pointer, index, &start, &count, &score, $0) }
                    return Beam(ids: Array(UnsafeBufferPointer(start: start, count: count)), score: score)
                }
            }
        }
    }

    // MARK: states

    /// A session of its own with the same options and tokens; what they have in common is one memory.
    public func fork() async throws -> Session {
        try await blockingCall { [vocabularySize] handle in
            let fork = try handle.opened("session", close: mote_session_close, cancel: mote_session_cancel) {
                mote_session_fork($0, $1, $2)
            }
            return Session(fork, vocabularySize)
        }
    }

    /// Writes tokens and caches to a file, whole or not at all.
    public func save(to url: URL) async throws { try await calling { mote_session_save($0, url.path, $1) } }

    /// Goes on from a file of the same model; an error changes nothing.
    public func restore(from url: URL) async throws { try await calling { mote_session_restore($0, url.path, $1) } }

    public struct Info: Hashable, Sendable {
        public let contextLength: Int
        public let numThreads: Int
        /// Tokens so far.
        public let position: Int
        /// Of the caches when the context is full.
        public let stateBytes: UInt64
        /// Activations and scratch.
        public let arenaBytes: UInt64
        /// Of the caches as far as tokens have reached.
        public let heldStateBytes: UInt64
        /// Because the context was full.
        public let forgottenTokens: Int
    }

    public var info: Info {
        get throws {
            gate.wait()
            var info = mote_session_info()
            info.struct_size = UInt32(MemoryLayout<mote_session_info>.size)
            try handle.call { mote_session_get_info($0, &info, $1) }
            return Info(
                contextLength: Int(info.context_length), numThreads: Int(info.num_threads), position: Int(info.position),
                stateBytes: info.state_bytes, arenaBytes: info.arena_bytes, heldStateBytes: info.held_state_bytes,
                forgottenTokens: Int(info.forgotten_tokens))
        }
    }

    // MARK: helpers of a session

    /// A smaller model that proposes tokens; nil: none.
    public func setDraftModel(_ draft: Model?) async throws {
        try await blockingCall { handle in
            let draft = try draft.map { ($0, try $0.handle.pointer()) }
            try withExtendedLifetime(draft) { try handle.call { mote_session_set_draft_model($0, draft?.1, $1) } }
        }
    }

    /// Computes from now on with adapters, each multiplied by its weight; none: the model alone.
    public func setAdapters(_ adapters: [(Adapter, weight: Float)]) async throws {
        try await blockingCall { handle in
            let pointers: [OpaquePointer?] = try adapters.map { try $0.0.handle.pointer() }
            let weights = adapters.map(\.weight)
            try withExtendedLifetime(adapters) {
                try handle.call { mote_session_set_adapters($0, pointers, weights, pointers.count, $1) }
            }
        }
    }

    /// Texts of the session decode together with others of the batch from now on; nil: alone again.
    public func join(_ batch: Batch?) async throws {
        try await blockingCall { [joined] handle in
            let pointer = try batch?.handle.pointer()
            try handle.call { mote_session_set_batch($0, pointer, $1) }
            joined.withLock { $0 = batch }
        }
    }

    /// Replays the golden samples: a JSON object with "passed". The session is reset before and after.
    public func checkGolden() async throws -> String {
        try await blockingCall { handle in
            try freedText { out in try handle.call { mote_session_check_golden($0, out, $1) } }
        }
    }

    private typealias Call = @Sendable (OpaquePointer?, UnsafeMutablePointer<mote_error>?) -> mote_error_code

    private func calling(_ call: @escaping Call) async throws {
        try await blockingCall { handle in try handle.call { call($0, $1) } }
    }

    private func floats(
        _ count: Int, _ call: @escaping @Sendable (OpaquePointer?, UnsafeMutablePointer<Float>?, UnsafeMutablePointer<mote_error>?) -> mote_error_code
    ) async throws -> [Float] {
        try await blockingCall { handle in
            try [Float](unsafeUninitializedCapacity: count) { buffer, size in
                try handle.call { call($0, buffer.baseAddress, $1) }
                size = count
            }
        }
    }

    /// A call on the session, which its task can cancel.
    private func blockingCall<T: Sendable>(_ body: @escaping @Sendable (Handle) throws -> T) async throws -> T {
        try await blocking(cancel: { [handle] in handle.cancel() }, forget: { [handle] in
            if let pointer = try? handle.pointer() { mote_session_forget_cancel(pointer) }
        }) { [self] in
            gate.wait()
            return try withExtendedLifetime(self) { try body(handle) }
        }
    }
}
