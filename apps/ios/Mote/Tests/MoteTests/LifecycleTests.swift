import Foundation
import Mote
import XCTest

/// Tasks that open, use, cancel and close what they share, in any order.
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
        switch Int.random(in: 0..<16, using: &random) {
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
