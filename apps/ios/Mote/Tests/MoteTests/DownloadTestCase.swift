import Foundation
import XCTest

/// With a server that has the demo model, and a folder.
class DownloadTestCase: XCTestCase {
    private(set) var content = Data()
    private(set) var server: FaultyServer!
    private(set) var folder: URL!

    override func setUp() async throws {
        content = try Data(contentsOf: demoURL)
        server = try FaultyServer(content)
        folder = try temporaryFolder(self)
    }

    override func tearDown() async throws { server.close() }
}
