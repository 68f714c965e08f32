import Mote
import XCTest

private struct Point: Decodable {
    let x: Int
    let y: Int
}

/// What stands in the README.
final class QuickStartTests: XCTestCase {
    func testQuickStart() async throws {
        let url = demoURL
        let model = try await Model(contentsOf: url)

        let chat = try await model.chat(instructions: "You write Python.")
        for try await event in chat.stream("Hello", options: ["temperature": 0.7, "seed": 2]) {
            switch event {
            case .content(let text): print(text, terminator: "")
            case .reasoning, .toolCall: break
            case .done(let statistics): print("\n\(statistics.generation.generatedTokens) tokens")
            }
        }
        let point = try await chat.respond(to: "A point near the origin", generating: Point.self)

        let session = try await model.session()
        for try await text in session.generate("def ", options: ["max_new_tokens": 16]) {
            print(text, terminator: "")
        }
        XCTAssertNotNil(point)
        XCTAssertGreaterThan(session.position, 16)
    }
}
