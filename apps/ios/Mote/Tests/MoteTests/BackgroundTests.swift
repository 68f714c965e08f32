import Foundation
import Mote
import XCTest

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// With a session of the process's own in the place of the system's, which needs an app.
final class BackgroundTests: DownloadTestCase {
    private func client(foregroundBytes: Int64 = 1 << 20) -> BackgroundDownloads {
        BackgroundDownloads(configuration: .ephemeral, folder: folder.appendingPathComponent("held"), foregroundBytes: foregroundBytes)
    }

    private func store(_ client: BackgroundDownloads) throws -> ModelStore {
        try ModelStore(folder: folder.appendingPathComponent("store"), client: client)
    }

    private var heldFiles: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: folder.appendingPathComponent("held").path)) ?? []
    }

    func testTheRestComesInATaskOfTheSession() async throws {
        let seen = Collected<Int64>()
        let url = try await store(client()).get(server.url) { seen.append($0.bytes) }
        XCTAssertEqual(try Data(contentsOf: url), content)
        XCTAssertEqual(seen.all.last, Int64(content.count))
        // The first bytes; how the server answers for the rest; the rest.
        let ranges = server.ranges
        XCTAssertEqual(ranges.count, 3, "\(ranges)")
        XCTAssertEqual(ranges[1], ranges[2])
        XCTAssertTrue(ranges[2].hasPrefix("bytes=") && ranges[2] != "bytes=0-")
        XCTAssertEqual(heldFiles, [])
    }

    func testASmallRestComesAtOnce() async throws {
        let url = try await store(client(foregroundBytes: 1 << 30)).get(server.url)
        XCTAssertEqual(try Data(contentsOf: url), content)
        XCTAssertEqual(server.ranges, [""])
    }

    func testTheFileThatAnEndedAppHasLeftIsTakenOver() async throws {
        let store = try store(client())
        let server = server!
        for try await progress in store.download(server.url) where progress.bytes >= 1 << 20 { break }
        // What was under way when nobody asked any more is still written.
        var from = -1
        while true {
            let bytes = Int(try await store.list()[0].bytes)
            if bytes == from { break }
            from = bytes
            try await Task.sleep(nanoseconds: 200_000_000)
        }
        // As the system hands it over when the app is started again.
        let key = "\"one\" bytes \(from)-\(content.count - 1)/\(content.count)".addingPercentEncoding(withAllowedCharacters: .alphanumerics)!
        let held = folder.appendingPathComponent("held")
        try FileManager.default.createDirectory(at: held, withIntermediateDirectories: true)
        try content.dropFirst(from).write(to: held.appendingPathComponent(key))
        let url = try await store.get(server.url)
        XCTAssertEqual(try Data(contentsOf: url), content)
        XCTAssertEqual(server.ranges, ["", "bytes=\(from)-"], "only the answer was asked for")
        XCTAssertEqual(heldFiles, [])
    }

    func testADownloadThatWasCancelledGoesOn() async throws {
        let (client, server) = (client(), server!)
        let store = try store(client)
        server.fail(.none, .none, .slow)
        let bytes = Collected<Int64>()
        let task = Task { try await store.get(server.url) { bytes.append($0.bytes) } }
        while (bytes.all.last ?? 0) < 1_500_000 { try await Task.sleep(nanoseconds: 10_000_000) }
        task.cancel()
        let result = await task.result
        XCTAssertThrowsError(try result.get()) { XCTAssertTrue($0 is CancellationError, "\($0)") }
        let url = try await store.get(server.url)
        XCTAssertEqual(try Data(contentsOf: url), content)
        #if canImport(Darwin)
            // With its task; elsewhere URLSession sends the request of a suspended one again.
            XCTAssertEqual(server.ranges.count, 4)
        #endif
    }

    func testWhatIsDiscardedComesAgain() async throws {
        let (client, server) = (client(), server!)
        let store = try store(client)
        server.fail(.none, .none, .stalled)
        for try await progress in store.download(server.url) where progress.bytes > 1_150_000 && server.ranges.count == 3 { break }
        await client.discard()
        let url = try await store.get(server.url)
        XCTAssertEqual(try Data(contentsOf: url), content)
        XCTAssertEqual(server.ranges.count, 5)
    }

    func testWhatServersDoWrongIsRight() async throws {
        let store = try store(client())
        server.fail(.none, .none, .cut, .none, .otherRange, .redirect)
        let url = try await store.get(server.url)
        XCTAssertEqual(try Data(contentsOf: url), content)
        XCTAssertEqual(heldFiles, [])
    }

    func testAFileThatChangesMeanwhileBeginsAnew() async throws {
        let store = try store(client())
        let server = server!
        for try await progress in store.download(server.url) where progress.bytes > 1 << 20 {
            server.withState { $0.etag = "\"two\"" }
        }
        let url = try await store.find("127.0.0.1/file")
        XCTAssertEqual(try Data(contentsOf: url), content)
    }
}
