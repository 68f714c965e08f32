import Foundation
import Mote
import XCTest

private enum Colour: String, Codable, CaseIterable {
    case red
    case green = "dark green"
}

private struct Point: Codable, Equatable {
    let x: Int
    let y: Int8?
    let colour: Colour
}

private struct Tree: Codable {
    let name: Bool
    let children: [Tree]
    let weights: [String: Double]
}

private struct Loose: Codable {
    enum Shape: Codable {
        case circle(radius: Int)
        case square(side: Int)
    }
    let shape: Shape
}

private struct Even: HasJSONSchema {
    static let jsonSchema: JSONValue = ["enum": [0, 2, 4]]
    let value: Int

    init(from decoder: any Decoder) throws {
        value = try decoder.singleValueContainer().decode(Int.self)
        if value % 2 != 0 { throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "odd")) }
    }
}

final class ChatTests: XCTestCase {
    private let options: Options = ["seed": 2, "max_new_tokens": 48]

    func testChatsOverSeveralTurns() async throws {
        let chat = try await demo().chat(instructions: "You write Python.")
        let first = try await chat.respond(to: "Hello", options: options)
        XCTAssertFalse(first.content.isEmpty)
        XCTAssertEqual(first.statistics?.keptTokens, 0)
        XCTAssertTrue(try chat.messages.contains("You write Python."))
        let events = try await chat.stream("And again", options: options).all()
        guard case .done(let second) = events.last else { return XCTFail("\(events)") }
        XCTAssertGreaterThanOrEqual(second.keptTokens, first.statistics!.promptTokens)
        XCTAssertEqual(try chat.numMessages, 5)
        _ = try await chat.regenerate(options: options).all()
        XCTAssertEqual(try chat.numMessages, 5)
        try chat.edit(1, ["role": "user", "content": "Other"])
        XCTAssertEqual(try chat.numMessages, 2)
        try chat.truncate(to: 1)
        XCTAssertFalse(try chat.prompt().isEmpty)
    }

    func testMessagesKeepEveryCharacter() async throws {
        let text = "\"quoted\" \\ \u{0} \u{1F} \n \u{1F600} \u{2028}"
        let chat = try await demo().chat(instructions: text)
        let messages = try JSONDecoder().decode([[String: String]].self, from: Data(chat.messages.utf8))
        XCTAssertEqual(messages, [["role": "system", "content": text]])
    }

    func testSecondChatAndSecondSession() async throws {
        let model = try await demo()
        let first = try await model.chat().respond(to: "Hello", options: options)
        let second = try await model.chat().respond(to: "Hello", options: options)
        XCTAssertEqual(first.content, second.content)
        let session = try await model.session()
        let third = try await model.chat(in: session).respond(to: "Hello", options: options)
        XCTAssertEqual(third.content, first.content)
        XCTAssertFalse(session.isClosed)
    }

    func testWhatWasWrittenOfALeftReplyStays() async throws {
        let chat = try await demo().chat()
        var written = ""
        for try await event in chat.stream("Hello", options: ["seed": 2]) {
            if case .content(let text) = event {
                written = text
                break
            }
        }
        // Waits until the reply that was left has ended.
        _ = try await chat.continueReply(options: greedy).all()
        XCTAssertEqual(try chat.numMessages, 2)
        XCTAssertTrue(try chat.messages.contains(written.trimmingCharacters(in: .whitespaces)))
    }

    func testRefusesBadConversations() async throws {
        let model = try await demo()
        for (tools, code) in [("{not json", MoteError.Code.template), ("{}", .invalidArgument), ("7", .invalidArgument)] {
            let chat = try await model.chat()
            await expect(code) {
                try chat.set(.tools, tools)
                return try await chat.respond(to: "Hello", options: greedy)
            }
            XCTAssertEqual(try chat.numMessages, 0)
        }
        let bad = Tool(name: "f", description: "", parameters: ["type": 7])
        let chat = try await model.chat(tools: [bad])
        try chat.set(.toolChoice, "required")
        await expect(.invalidArgument) { try await chat.respond(to: "Hello", options: greedy) }
        XCTAssertEqual(try chat.messages, "[]")
        await expect(.invalidState) { try await chat.regenerate().all() }
        await expect(.invalidArgument) { try chat.append([]) }
        await expect(.invalidArgument) { try chat.edit(7, ["role": "user", "content": "x"]) }
        try chat.set(.toolChoice, nil)
        try chat.set(.tools, nil)
        try chat.set(.template, "{{ raise_exception('no') }}")
        await expect(.template) { try await chat.respond(to: "Hello", options: greedy) }
        XCTAssertEqual(try chat.numMessages, 0)
    }

    func testEmptyMessagesAreAnsweredOrRefused() async throws {
        let chat = try await demo().chat()
        _ = try await chat.respond(to: "", options: greedy)
        XCTAssertEqual(try chat.numMessages, 2)
        try chat.append(["role": "user"])
        let message = await expect(.template) { try await chat.reply(options: greedy).all() }
        XCTAssertTrue(message.contains("has no attribute 'content'"), message)
    }

    func testCallsOfToolsAreEvents() async throws {
        let tool = try Tool(name: "move", description: "Moves the turtle", arguments: Point.self)
        let chat = try await demo().chat(tools: [tool])
        try chat.set(.toolChoice, "required")
        let reply = try await chat.respond(to: "Move", options: ["temperature": 0, "max_new_tokens": 400])
        let call = try XCTUnwrap(reply.toolCalls.first)
        XCTAssertEqual(call.name, "move")
        _ = try call.decoded(as: Point.self)
        try chat.answer(call, with: "done \u{1F600}")
        try chat.set(.toolChoice, "none")
        let after = try await chat.reply(options: greedy).wholeReply()
        XCTAssertNotNil(after.statistics)
    }

    func testRepliesWithValues() async throws {
        let chat = try await demo().chat()
        let compact: Options = ["temperature": 0, "max_new_tokens": 600, "json_whitespace": "compact"]
        _ = try await chat.respond(to: "A point", generating: Point.self, options: compact)
        let colour = try await chat.respond(to: "A colour", generating: Colour.self, options: compact)
        XCTAssertTrue(Colour.allCases.contains(colour))
        let even = try await chat.respond(to: "A number", generating: Even.self, options: compact)
        XCTAssertEqual(even.value % 2, 0)
        let given = try await chat.respond(
            to: "Which?", generating: [String].self, schema: ["const": ["a", "b"]], options: compact)
        XCTAssertEqual(given, ["a", "b"])
        do {
            _ = try await chat.respond(to: "A point", generating: Point.self, options: compact.with("max_new_tokens", 2))
            XCTFail("a value that is cut off is none")
        } catch is DecodingError {}
    }

    func testSchemasAreOfWhatDecodersRead() async throws {
        XCTAssertEqual(
            try JSONSchema.of(Point.self),
            [
                "type": "object",
                "properties": [
                    "x": ["type": "integer"], "y": ["type": "integer", "minimum": -128, "maximum": 127],
                    "colour": ["enum": ["red", "dark green"]],
                ], "required": ["x", "colour"], "additionalProperties": false,
            ])
        let model = try await demo()
        for schema in [try JSONSchema.of(Tree.self), try JSONSchema.of([String: [Float?]].self), try JSONSchema.of(Set<UInt8>.self)] {
            _ = try await model.grammar(.jsonSchema, schema.json)
        }
        let message = await expect(.invalidArgument) { try JSONSchema.of(Loose.self) }
        XCTAssertTrue(message.contains("Shape"), message)
    }

    func testCancellingATaskEndsItsReply() async throws {
        let chat = try await demo().chat(options: shifted)
        let task = Task { try await chat.respond(to: "Hello", options: endless) }
        while chat.session.position < 4 { try await Task.sleep(nanoseconds: 1_000_000) }
        task.cancel()
        do {
            _ = try await task.value
            XCTFail("the task was cancelled")
        } catch is CancellationError {}
        XCTAssertEqual(try chat.numMessages, 2)
        _ = try await chat.respond(to: "And now", options: greedy)
    }
}
