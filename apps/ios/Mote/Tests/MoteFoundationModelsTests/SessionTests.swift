import Foundation
import FoundationModels
import Mote
import MoteFoundationModels
import XCTest

private let short = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 16)

private func model(thinkingBudget: Int? = nil) async throws -> MoteLanguageModel {
    try await MoteLanguageModel(contentsOf: demoURL, thinkingBudget: thinkingBudget)
}

private let move = Transcript.ToolDefinition(
    name: "move", description: "Moves the turtle",
    parameters: GenerationSchema(
        .object([
            "type": .text("object"), "x-order": .list([.text("steps"), .text("back")]), "required": .list([.text("steps"), .text("back")]),
            "additionalProperties": .flag(false),
            "properties": .object(["back": .object(["type": .text("boolean")]), "steps": .object(["enum": .list([.text("one"), .text("two")])])]),
        ])))

final class SessionTests: XCTestCase {
    func testATurnCostsItsNewTokensOnly() async throws {
        let session = try LanguageModelSession(model: try await model(), instructions: "You write Python.")
        for turn in 0..<20 { _ = try await session.respond(to: "Message \(turn)", options: short) }
        let usages = await session.usages
        XCTAssertEqual(usages.count, 20)
        for (before, usage) in zip(usages, usages.dropFirst()) {
            let new = usage.prompt - before.prompt - before.generated
            XCTAssertLessThanOrEqual(Double(usage.prompt - usage.cached), Double(new) * 1.05 + 1, "\(usage) after \(before)")
        }
        print("prefilled tokens a turn:", usages.map { $0.prompt - $0.cached }, "of", usages.last!.prompt)
    }

    func testTwoSessionsShareOneModel() async throws {
        let model = try await model()
        let first = try LanguageModelSession(model: model, instructions: "You write Python.")
        let second = try LanguageModelSession(model: model, instructions: "You write Python.")
        for _ in 0..<3 {
            let texts = (try await first.respond(to: "Hello", options: short), try await second.respond(to: "Hello", options: short))
            XCTAssertEqual(texts.0, texts.1)
        }
        // Each goes on from its own caches.
        let cached = (await first.usages.last!.cached, await second.usages.last!.cached)
        XCTAssertGreaterThan(cached.0, 20)
        XCTAssertEqual(cached.0, cached.1)
        XCTAssertEqual(model.executorConfiguration, model.executorConfiguration)
    }

    func testPrewarmingReadsTheInstructions() async throws {
        let session = try LanguageModelSession(model: try await model(), instructions: String(repeating: "You write Python. ", count: 8))
        await session.prewarm()
        try await Task.sleep(nanoseconds: 500_000_000)
        _ = try await session.respond(to: "Hello", options: short)
        let usage = await session.usages[0]
        XCTAssertGreaterThan(usage.cached, 16)
    }

    func testToolsAreCalledAndSentOnce() async throws {
        let calls = Collected<String>()
        let tool = LanguageModelSession<MoteLanguageModel>.Tool(move) {
            calls.append($0)
            return "moved"
        }
        let session = try LanguageModelSession(model: try await model(), tools: [tool], instructions: "You move a turtle.")
        let options = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 200, toolCallingMode: .required)
        for _ in 0..<3 { _ = try await session.respond(to: "Move", options: options) }
        XCTAssertEqual(calls.all.count, 3)
        let arguments = try JSONSerialization.jsonObject(with: Data(calls.all[0].utf8)) as? [String: Any]
        XCTAssertEqual(arguments?.keys.sorted(), ["back", "steps"])
        XCTAssertLessThan(calls.all[0].range(of: "steps")!.lowerBound, calls.all[0].range(of: "back")!.lowerBound)
        let usages = await session.usages
        XCTAssertEqual(usages.count, 6)
        for (before, usage) in zip(usages, usages.dropFirst()) {
            let new = usage.prompt - before.prompt - before.generated
            XCTAssertLessThanOrEqual(usage.prompt - usage.cached, max(new, 0) + 16, "\(usage) after \(before)")
        }
    }

    func testRepliesFollowASchema() async throws {
        let session = try LanguageModelSession(model: try await model(), instructions: "You move a turtle.")
        let options = GenerationOptions(samplingMode: .greedy, maximumResponseTokens: 200)
        let text = try await session.respond(to: "Where to?", schema: move.parameters, options: options)
        let value = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        XCTAssertTrue(["one", "two"].contains(value?["steps"] as? String), text)
        XCTAssertNotNil(value?["back"] as? Bool)
    }

    func testRefusesWhatIsNoTextAndWhatIsTooLong() async throws {
        let session = try LanguageModelSession(model: try await model(), instructions: "You write Python.")
        await session.append(.prompt(.init(segments: [.attachment("image")])))
        do {
            _ = try await session.respond(to: "Hello", options: short)
            XCTFail("an image is no text")
        } catch LanguageModelError.unsupportedTranscriptContent {}
        let small = MoteLanguageModel(try await Model(contentsOf: demoURL), sessionOptions: ["context_length": 32])
        let other = try LanguageModelSession(model: small, instructions: "You write Python.")
        do {
            _ = try await other.respond(to: String(repeating: "word ", count: 100), options: short)
            XCTFail("the context is too short")
        } catch LanguageModelError.contextSizeExceeded {}
    }
}

private final class Collected<Element: Sendable>: @unchecked Sendable {
    private let lock = NSLock()
    private var elements: [Element] = []
    var all: [Element] { lock.withLock { elements } }
    func append(_ element: Element) { lock.withLock { elements.append(element) } }
}
