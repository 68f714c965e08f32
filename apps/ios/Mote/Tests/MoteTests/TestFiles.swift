import Foundation
import XCTest

let demoURL = URL(fileURLWithPath: ProcessInfo.processInfo.environment["MOTE_DEMO"] ?? "out/demo.mote")

/// A folder that is removed with the test.
func temporaryFolder(_ test: XCTestCase) throws -> URL {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    test.addTeardownBlock { try? FileManager.default.removeItem(at: folder) }
    return folder
}
