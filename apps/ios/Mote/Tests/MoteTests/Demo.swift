import Foundation
import Mote
import XCTest

/// How many random lifecycles, and tokens while memory is watched.
let numSequences = Int(ProcessInfo.processInfo.environment["MOTE_SEQUENCES"] ?? "") ?? 200
let numTokens = Int(ProcessInfo.processInfo.environment["MOTE_TOKENS"] ?? "") ?? 4000

let prompt = "import os\n\n\ndef "
let greedy: Options = ["temperature": 0, "max_new_tokens": 24]
let endless: Options = ["ignore_eos": true, "max_new_tokens": 100_000]
let shifted: Options = ["overflow": "shift"]

func demo() async throws -> Model { try await Model(contentsOf: demoURL) }

extension AsyncThrowingStream where Failure == any Error {
    func all() async throws -> [Element] {
        var all: [Element] = []
        for try await element in self { all.append(element) }
        return all
    }
}

extension Session {
    func text(_ options: Options = greedy) async throws -> String { try await generate(prompt, options: options).all().joined() }
}

/// The sentence of the error that is thrown, whose code must be this one.
@discardableResult
func expect<T>(
    _ code: MoteError.Code, file: StaticString = #filePath, line: UInt = #line, _ body: () async throws -> T
) async -> String {
    do {
        _ = try await body()
        XCTFail("nothing is thrown: must be \(code.name)", file: file, line: line)
    } catch let error as MoteError {
        XCTAssertEqual(error.code, code, error.description, file: file, line: line)
        return error.message
    } catch {
        XCTFail("\(error)", file: file, line: line)
    }
    return ""
}
