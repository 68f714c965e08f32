import Foundation
import Mote
import XCTest

final class MemoryTests: XCTestCase {
    func testStreamingNeedsNoMoreAndMoreMemory() async throws {
        let session = try await demo().session(options: ["context_length": 256, "overflow": "shift"])
        let options: Options = ["ignore_eos": true, "max_new_tokens": .integer(Int64(numTokens + 1)), "temperature": 0]
        var count = 0
        var resident = 0
        for try await _ in session.pieces(after: try session.tokens(of: "def "), options: options) {
            count += 1
            if count == numTokens / 2 { resident = try residentBytes() }
        }
        let more = try residentBytes() - resident
        print("\(count) tokens: process \(more) bytes more in the second half")
        XCTAssertGreaterThan(count, numTokens)
        XCTAssertLessThan(more, 4 << 20)
    }

    func testWhatIsForgottenIsClosed() async throws {
        let model = try await demo()
        var resident = 0
        for i in 0..<300 {
            if i == 100 { resident = try residentBytes() }
            let session = try await model.session(options: ["context_length": 512, "num_threads": 1])
            try await session.append(prompt)
        }
        XCTAssertLessThan(try residentBytes() - resident, 16 << 20)
    }

    private func residentBytes() throws -> Int {
        guard let pages = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")[1] else { return 0 }
        return Int(pages)! * 4096
    }
}
