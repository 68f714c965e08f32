import Foundation
import Mote
import MoteChat
import Observation
import XCTest

@MainActor
final class ConversationTests: XCTestCase {
    private var folder: URL!
    private var store: ChatStore!
    private var model: Model!
    private let short = ChatSettings(instructions: "Be brief.", values: ["max_new_tokens": "12", "temperature": "0"])
    /// A reply of many seconds.
    private let slow = ChatSettings(values: ["pace": "2", "seed": "1"])

    override func setUp() async throws {
        folder = try temporaryFolder(self)
        store = ChatStore(folder: folder.appendingPathComponent("chats"))
        model = try await Model(contentsOf: demoURL)
    }

    private func open(_ settings: ChatSettings) async throws -> Conversation {
        try await Conversation.open(model, store, store.create(model: "demo", settings: settings))
    }

    private func roles(_ chat: Conversation) -> [Role] { chat.state.messages.map(\.role) }

    private func say(_ text: String, to chat: Conversation) async {
        chat.send(text)
        await chat.idle()
    }

    private func untilItWrites(_ chat: Conversation) async throws {
        try await until { chat.state.draft?.text.contains { !$0.isWhitespace } == true }
    }

    func testAReplyIsStreamedAndKept() async throws {
        let chat = try await open(short)
        let drafts = Drafts()
        drafts.watch(chat)
        await say("Hello", to: chat)
        XCTAssertEqual(roles(chat), [.user, .assistant])
        XCTAssertFalse(chat.state.isWriting)
        XCTAssertNil(chat.state.error)
        XCTAssertEqual(chat.state.title, "Hello")
        XCTAssertEqual(chat.state.statistics?.generation.generatedTokens, 12)
        let reply = try XCTUnwrap(chat.state.messages.last?.text)
        XCTAssertGreaterThan(drafts.texts.count, 1)
        XCTAssertTrue(drafts.texts.allSatisfy { reply.hasPrefix($0.trimmingCharacters(in: .whitespacesAndNewlines)) })
    }

    func testSurvivesARestartWithItsSession() async throws {
        let before = try await open(short)
        await say("Hello", to: before)
        try await before.persist()
        before.close()
        let saved = try XCTUnwrap(store.list().first)
        XCTAssertEqual(saved.id, before.id)
        XCTAssertEqual(saved.title, "Hello")
        XCTAssertEqual(saved.settings, short)
        let chat = try await Conversation.open(model, store, saved)
        XCTAssertEqual(chat.state.messages.count, 2)
        await say("And now?", to: chat)
        XCTAssertEqual(chat.state.messages.count, 4)
        XCTAssertGreaterThan(try XCTUnwrap(chat.state.statistics).keptTokens, 12, "the session was restored")
    }

    func testASessionThatCannotBeReadIsComputedAgain() async throws {
        await say("Hello", to: try await open(short))
        let saved = try XCTUnwrap(store.list().first)
        try Data("not a session".utf8).write(to: store.sessionURL(saved.id))
        let chat = try await Conversation.open(model, store, saved)
        await say("And now?", to: chat)
        XCTAssertEqual(chat.state.messages.count, 4)
        XCTAssertFalse(FileManager.default.fileExists(atPath: store.sessionURL(saved.id).path))
    }

    func testWhatWasWrittenBeforeAStopStays() async throws {
        let chat = try await open(slow)
        chat.send("Hello")
        XCTAssertTrue(chat.state.isWriting)
        try await untilItWrites(chat)
        chat.stop()
        await chat.idle()
        XCTAssertEqual(roles(chat), [.user, .assistant])
        XCTAssertEqual(chat.state.messages.last?.text.isEmpty, false)
        chat.stop()
        XCTAssertFalse(chat.state.isWriting)
    }

    func testOneTurnAtATime() async throws {
        let chat = try await open(slow)
        chat.send("Hello")
        try await untilItWrites(chat)  // a reply without text would not stay
        chat.send("Again")
        chat.regenerate()
        chat.change(short)
        chat.stop()
        await chat.idle()
        XCTAssertEqual(chat.state.messages.first?.text, "Hello")
        XCTAssertEqual(chat.state.messages.count, 2)
        XCTAssertEqual(chat.settings, slow)
    }

    func testRegeneratesAndEdits() async throws {
        let chat = try await open(short)
        await say("Hello", to: chat)
        let reply = chat.state.messages.last
        chat.regenerate()
        await chat.idle()
        XCTAssertEqual(chat.state.messages.last, reply, "the likeliest tokens are the same")
        await say("More", to: chat)
        chat.edit(0, "Goodbye")
        await chat.idle()
        XCTAssertEqual(chat.state.messages.filter { $0.role == .user }.map(\.text), ["Goodbye"])
        XCTAssertEqual(chat.state.messages.count, 2)
    }

    func testOtherInstructionsLeaveTheMessages() async throws {
        let chat = try await open(short)
        await say("Hello", to: chat)
        chat.change(ChatSettings(instructions: "Be long.", values: short.values))
        await say("More", to: chat)
        XCTAssertEqual(chat.state.messages.count, 4)
        XCTAssertEqual(store.list().map(\.settings.instructions), ["Be long."])
        let messages = try XCTUnwrap(store.messages(chat.id))
        XCTAssertTrue(messages.contains("Be long."))
        XCTAssertFalse(messages.contains("Be brief."))
        chat.change(ChatSettings(values: short.values))
        XCTAssertEqual(chat.state.messages.count, 4)
        XCTAssertNil(chat.state.error)
    }

    func testAttachedTextsGoWithTheNextMessage() async throws {
        let chat = try await open(short)
        chat.attach("a.py", "x = 1\n")
        chat.attach("b.py", "y = 2")
        chat.detach(1)
        chat.detach(7)
        await say("What is it?", to: chat)
        XCTAssertEqual(chat.state.messages.first?.text, "File \"a.py\":\n```\nx = 1\n```\n\nWhat is it?")
        XCTAssertEqual(chat.state.attachments, [])
        XCTAssertTrue(chat.export().contains("**user**\n\nFile \"a.py\""))
    }

    func testFilesAreAttachedThatAreTextsAndNotLong() async throws {
        let chat = try await open(short)
        let file = folder.appendingPathComponent("a.txt")
        try Data("text".utf8).write(to: file)
        chat.attach(contentsOf: file)
        XCTAssertEqual(chat.state.attachments.map(\.name), ["a.txt"])
        for (content, reason) in [(Data([0xFF, 0xFE]), "UTF-8"), (Data(count: 300_000), "KiB")] {
            try content.write(to: file)
            chat.attach(contentsOf: file)
            XCTAssertTrue(chat.state.error?.contains(reason) == true, chat.state.error ?? "")
        }
        chat.attach(contentsOf: folder.appendingPathComponent("gone"))
        XCTAssertNotNil(chat.state.error)
        XCTAssertEqual(chat.state.attachments.count, 1)
    }

    func testWhatIsRefusedIsSaidAndTheMessageTakenBack() async throws {
        let chat = try await open(ChatSettings(instructions: "Be brief.", values: ["top_p": "2"]))
        chat.attach("a.py", "x = 1\n")
        await say("Hello", to: chat)
        XCTAssertEqual(chat.state.error, "top_p = 2: must be a number, 0..1 (1: off)")
        XCTAssertEqual(chat.state.messages, [])
        XCTAssertEqual(chat.state.attachments.count, 1)
        chat.change(short)
        await say("Hello", to: chat)
        XCTAssertNil(chat.state.error)
        let long = try await open(short)
        await say(String(repeating: "Hello ", count: 5000), to: long)
        XCTAssertTrue(long.state.error?.contains("context") == true, long.state.error ?? "")
    }

    func testClosingEndsWhatRuns() async throws {
        let chat = try await open(slow)
        chat.send("Hello")
        chat.close()
        await chat.idle()
        XCTAssertNotNil(store.messages(chat.id))
    }

    func testTheListLeavesOutWhatCannotBeRead() async throws {
        try store.save(store.create(model: "m"), messages: "[]")
        let other = folder.appendingPathComponent("chats/x")
        try FileManager.default.createDirectory(at: other, withIntermediateDirectories: true)
        try Data("{".utf8).write(to: other.appendingPathComponent("chat.json"))
        XCTAssertEqual(store.list().count, 1)
        let saved = store.list()[0]
        store.delete(saved.id)
        XCTAssertEqual(store.list(), [])
        XCTAssertNil(store.messages(saved.id))
    }
}

/// What the drafts of a chat were, one after the other.
@MainActor
private final class Drafts {
    private(set) var texts: [String] = []

    func watch(_ chat: Conversation) {
        withObservationTracking {
            if let text = chat.state.draft?.text { texts.append(text) }
        } onChange: { [weak self, weak chat] in
            Task { @MainActor in
                if let chat { self?.watch(chat) }
            }
        }
    }
}
