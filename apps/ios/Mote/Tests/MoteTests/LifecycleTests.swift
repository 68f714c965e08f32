import Foundation
import Mote
import XCTest

/// What begins, ends and is dropped in every order.
final class LifecycleTests: XCTestCase {
    private static let short = greedy.with("max_new_tokens", 6)

    private final class Shared<Handle: Sendable>: @unchecked Sendable {
        private let lock = NSLock()
        private var handles: [Handle?]

        init(_ count: Int) {
            handles = .init(repeating: nil, count: count)
        }

        subscript(index: Int) -> Handle? {
            get { lock.withLock { handles[index % handles.count] } }
            set { lock.withLock { handles[index % handles.count] = newValue } }
        }
    }

    func testConcurrentGenerateIsRefused() async throws {
        let session = try await demo().session(options: shifted)
        let (started, starting) = AsyncStream<Void>.makeStream()
        let first = Task {
            for try await _ in session.generate(prompt, options: endless) { starting.yield() }
        }
        for await _ in started { break }
        for _ in 0..<4 { await expect(.invalidState) { try await session.text() } }
        first.cancel()
        _ = await first.result
        let text = try await session.text()
        XCTAssertFalse(text.isEmpty)
    }

    func testTwoCallsAtOnceSaySo() async throws {
        let session = try await demo().session(options: shifted)
        let ids = (0..<400).map { Int32(100 + $0) }
        let codes = Collected<MoteError.Code>()
        // Whichever call comes second is refused.
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<4 {
                        do {
                            try await session.append(ids)
                        } catch {
                            codes.append((error as! MoteError).code)
                        }
                    }
                }
            }
        }
        XCTAssertFalse(codes.all.isEmpty)
        XCTAssertEqual(Set(codes.all), [.invalidState])
        let text = try await session.text()
        XCTAssertFalse(text.isEmpty)
    }

    func testStopFromAnotherThread() async throws {
        let session = try await demo().session(options: shifted)
        let told = Collected<Statistics>()
        var isFirst = true
        for try await _ in session.generate(prompt, options: endless, onDone: { told.append($0) }) {
            if isFirst { Thread { session.cancel() }.start() }
            isFirst = false
        }
        XCTAssertEqual(told.all.first?.finishReason, .cancelled)
        let text = try await session.text()
        XCTAssertFalse(text.isEmpty)
    }

    func testStopWhenIdleEndsTheNextCallOnly() async throws {
        let session = try await demo().session()
        session.cancel()
        await expect(.cancelled) { try await session.append(prompt) }
        try await session.append(prompt)
    }

    func testClosingWhileGeneratingEndsTheText() async throws {
        let model = try await demo()
        let session = try await model.session(options: shifted)
        var last: Piece?
        for try await piece in session.pieces(after: try model.tokens(of: prompt), options: endless) {
            session.close()
            last = piece
        }
        XCTAssertEqual(last?.finishReason, .cancelled)
        await expect(.closed) { try await session.text() }
    }

    func testGenerateAfterCloseSaysSo() async throws {
        let model = try await demo()
        let session = try await model.session()
        let chat = try await model.chat()
        for _ in 0..<2 {
            session.close()
            chat.close()
            model.close()
        }
        let message = await expect(.closed) { try model.info }
        XCTAssertEqual(message, "the model is closed")
        await expect(.closed) { try await model.session() }
        await expect(.closed) { try session.tokens }
        await expect(.closed) { try await session.append("x") }
        await expect(.closed) { try await session.text() }
        await expect(.closed) { try chat.messages }
        await expect(.closed) { try await chat.respond(to: "Hello") }
        await expect(.closed) { try chat.session.tokens }
        XCTAssertTrue(model.isClosed && session.isClosed && chat.isClosed)
        session.cancel()
    }

    func testClosingFromACallback() async throws {
        let (model, other) = (try await demo(), try await demo())
        let session = try await model.session()
        let stream = session.generate(prompt, options: greedy) { _ in
            session.close()
            model.close()
        }
        let text = try await stream.all().joined()
        XCTAssertFalse(text.isEmpty)
        XCTAssertTrue(session.isClosed && model.isClosed)
        _ = try await Model(contentsOf: demoURL) { _ in other.close() }
        await expect(.closed) { try await other.session() }
    }

    /// As an app that is ended while a chat is on its screen.
    func testDropAndRestoreGoesOnWithoutComputingAgain() async throws {
        let options: Options = ["seed": 2, "max_new_tokens": 24]
        let file = try temporaryFolder(self).appendingPathComponent("chat.session")
        var chat: Chat? = try await demo().chat(instructions: "You write Python.")
        _ = try await chat!.respond(to: "Hello", options: options)
        let messages = try chat!.messages
        try await chat!.session.save(to: file)
        let expected = try await chat!.respond(to: "And again", options: options)
        chat = nil
        let restored = try await demo().chat()
        try restored.set(.messages, messages)
        try await restored.session.restore(from: file)
        let reply = try await restored.respond(to: "And again", options: options)
        XCTAssertEqual(reply.content, expected.content)
        let statistics = try XCTUnwrap(reply.statistics)
        XCTAssertEqual(statistics.keptTokens, expected.statistics?.keptTokens)
        XCTAssertGreaterThan(statistics.keptTokens, statistics.promptTokens / 2)
    }

    func testAnyOrderFromManyTasksGivesTheRightTextOrAnError() async throws {
        let model = try await demo()
        let expected = try await Self.open(model).text(Self.short)
        let (sessions, chats, folder) = (Shared<Session>(6), Shared<Chat>(4), try temporaryFolder(self))
        let numTexts = Collected<Bool>()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in 0..<8 {
                group.addTask {
                    var random = Random(seed: UInt64(worker))
                    for _ in 0..<(numSequences / 8 + 1) * 8 {
                        do {
                            let text = try await Self.act(model, sessions, chats, folder, &random)
                            if let text { numTexts.append(text == expected) }
                        } catch let error as MoteError {
                            let known: [MoteError.Code] = [.closed, .invalidState, .cancelled, .contextFull, .fileNotFound, .invalidArgument]
                            XCTAssertTrue(known.contains(error.code), error.description)
                        } catch is CancellationError {
                            // The task that was cancelled.
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        XCTAssertGreaterThan(numTexts.all.count, numSequences / 4)
        XCTAssertFalse(numTexts.all.contains(false))
    }

    private static func open(_ model: Model) async throws -> Session {
        try await model.session(options: ["context_length": 128, "num_threads": 1])
    }

    /// Returns the text of a session that nobody shares.
    private static func act(
        _ model: Model, _ sessions: Shared<Session>, _ chats: Shared<Chat>, _ folder: URL, _ random: inout Random
    ) async throws -> String? {
        let at = Int.random(in: 0..<6, using: &random)
        let file = folder.appendingPathComponent("\(at).session")
        switch Int.random(in: 0..<18, using: &random) {
        case 0, 1: sessions[at] = try await open(model)
        case 2: chats[at] = try await model.chat(instructions: "You write Python.", options: ["context_length": 256])
        case 3: if let session = sessions[at] { sessions[at + 1] = try await session.fork() }
        case 4, 5: return try await open(model).text(short)
        case 6: if let chat = chats[at] { _ = try await chat.respond(to: "Hello", options: short) }
        case 7: chats[at]?.session.cancel()
        case 8: if let chat = chats[at] { for try await _ in chat.stream("Hello", options: short) { break } }
        case 9: try await sessions[at]?.append(prompt)
        case 10: _ = try await sessions[at]?.text(short)
        case 11:
            if let session = sessions[at] {
                let task = Task { try await session.text(short) }
                task.cancel()
                _ = try await task.value
            }
        case 12: try await sessions[at]?.save(to: file)
        case 13: try await sessions[at]?.restore(from: file)
        case 14: try await sessions[at]?.rewind(to: Int.random(in: 0..<10, using: &random))
        case 15: try model.releasePages()
        default:
            sessions[at]?.close()
            chats[at]?.close()
        }
        return nil
    }
}

/// The same numbers for the same seed: splitmix64.
struct Random: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
