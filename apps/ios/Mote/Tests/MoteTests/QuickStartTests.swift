import Foundation
import Mote
import XCTest

/// What the README and the reference begin with.
final class QuickStartTests: XCTestCase {
    struct Point: Decodable {
        let x: Int
        let y: Int
    }

    func testTheDocumentationShowsWhatIsTestedHere() throws {
        let lines = { (text: String) in text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) } }
        let file = URL(fileURLWithPath: #filePath)
        let tested = Set(lines(try String(contentsOf: file, encoding: .utf8)))
        let package = file.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        for page in ["README.md", "Sources/Mote/Mote.docc/Mote.md"] {
            let text = try String(contentsOf: package.appendingPathComponent(page), encoding: .utf8)
            let shown = try XCTUnwrap(text.components(separatedBy: "```swift\n").dropFirst().first?.components(separatedBy: "```").first)
            for line in lines(shown) { XCTAssertTrue(tested.contains(line), "\(page): \(line)") }
        }
    }

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
