import Foundation
import Mote
import XCTest

let demoURL = URL(fileURLWithPath: ProcessInfo.processInfo.environment["MOTE_DEMO"] ?? "out/demo.mote")

/// A folder that is removed with the test.
func temporaryFolder(_ test: XCTestCase) throws -> URL {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    test.addTeardownBlock { try? FileManager.default.removeItem(at: folder) }
    return folder
}

/// Waits for something that a task brings about.
@MainActor
func until(_ what: String = #function, _ condition: @MainActor () -> Bool) async throws {
    for _ in 0..<6000 {
        if condition() { return }
        try await Task.sleep(nanoseconds: 10_000_000)
    }
    XCTFail("\(what): nothing happens")
}
