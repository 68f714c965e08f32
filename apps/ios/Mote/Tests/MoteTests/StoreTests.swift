import Foundation
import Mote
import XCTest

final class StoreTests: DownloadTestCase {
    private var store: ModelStore!

    override func setUp() async throws {
        try await super.setUp()
        store = try ModelStore(folder: folder)
    }

    override func tearDown() async throws {
        store.close()
        try await super.tearDown()
    }

    private func get(_ options: DownloadOptions = DownloadOptions()) async throws -> URL {
        try await store.get(server.url, options: options)
    }

    private func hashInManifest() async throws -> String {
        struct Manifest: Decodable { let sha256: String }
        let listed = try await store.list()
        return try JSONDecoder().decode(Manifest.self, from: Data(listed[0].manifest.utf8)).sha256
    }

    func testDownloadsListsFindsAndRemoves() async throws {
        let seen = Collected<DownloadProgress>()
        let url = try await store.get(server.url) { seen.append($0) }
        XCTAssertEqual(try Data(contentsOf: url), content)
        XCTAssertEqual(seen.all.last?.bytes, Int64(content.count))
        XCTAssertEqual(seen.all.last?.totalBytes, Int64(content.count))
        XCTAssertEqual(seen.all.filter(\.isDone).map(\.isNew), [true])
        XCTAssertTrue(zip(seen.all, seen.all.dropFirst()).allSatisfy { $0.bytes <= $1.bytes })
        let model = try await Model(contentsOf: url)
        XCTAssertTrue(try model.info.hasTokenizer)
        let listed = try await store.list()
        XCTAssertEqual(listed.map(\.bytes), [UInt64(content.count)])
        XCTAssertTrue(listed[0].isWhole && listed[0].lastUsed > Date(timeIntervalSinceNow: -3600))
        let found = try await store.find("127.0.0.1/file")
        XCTAssertEqual(found.path, url.path)
        let named = try await store.list("127.0.0.1/file")
        XCTAssertEqual(named[0].name, "127.0.0.1/file:file")
        await expect(.fileNotFound) { try await self.store.find("127.0.0.1/fill") }
        await expect(.invalidArgument) { try await self.store.find("nothing") }
        let evicted = try await store.evict(maxBytes: 1 << 40)
        XCTAssertEqual(evicted, [])
        let freed = try await store.remove("127.0.0.1/file")
        XCTAssertEqual(freed, UInt64(content.count))
        let left = try await store.list()
        XCTAssertEqual(left, [])
    }

    func testEvictsWhatNobodyHasOpen() async throws {
        _ = try await get()
        let evicted = try await store.evict(maxBytes: 0)
        XCTAssertEqual(evicted.map(\.name), ["127.0.0.1/file:file"])
    }

    func testGetsFromAHubAndIsThereWithoutIt() async throws {
        let options = DownloadOptions(endpoint: server.endpoint, token: "secret")
        let url = try await store.get("org/demo", options: options)
        XCTAssertEqual(try Data(contentsOf: url), content)
        XCTAssertEqual(server.paths, ["/api/models/org/demo?blobs=true", "/org/demo/resolve/c0ffee/demo.mote"])
        server.close()
        let found = try await store.find("org/demo")
        XCTAssertEqual(found.path, url.path)
    }

    func testGoesOnWhereItBrokeOff() async throws {
        server.fail(.cut, .cut, .redirect, .otherRange, .busy)
        let url = try await get()
        XCTAssertEqual(try Data(contentsOf: url), content)
        XCTAssertTrue(server.ranges.contains("bytes=200000-"), "\(server.ranges)")
    }

    func testAskedAgainTakesOnlyWhatIsNew() async throws {
        _ = try await get()
        let sent = server.sentBytes
        let again = try await store.download(server.url).all()
        XCTAssertEqual(again.last?.isNew, false)
        XCTAssertLessThan(server.sentBytes, sent + 1000)
    }

    func testWhatServersDoWrongIsRightOrRefused() async throws {
        _ = try await get()
        let options = DownloadOptions(sha256: try await hashInManifest())
        var random = Random(seed: 5)
        let faults = FaultyServer.Fault.allCases.filter { ![.stalled, .busy, .slow].contains($0) }
        for round in 0..<6 {
            try await store.remove("127.0.0.1/file")
            server.withState { state in
                state.faults = (0..<2).map { _ in faults.randomElement(using: &random)! }
                state.etag = "\"\(round % 3)\""
            }
            do {
                let url = try await get(options)
                XCTAssertEqual(try Data(contentsOf: url), content)
            } catch let refused as MoteError {
                XCTAssertFalse(refused.message.isEmpty)
                _ = try await get(options)
            }
        }
    }

    func testCancellingATaskKeepsWhatCame() async throws {
        server.fail(.stalled)
        let bytes = Collected<Int64>()
        let task = Task { [store, server] in try await store!.get(server!.url) { bytes.append($0.bytes) } }
        while (bytes.all.last ?? 0) < 100_000 { try await Task.sleep(nanoseconds: 10_000_000) }
        task.cancel()
        let result = await task.result
        XCTAssertThrowsError(try result.get()) { XCTAssertTrue($0 is CancellationError, "\($0)") }
        let parts = try await store.list()
        XCTAssertEqual(parts.map(\.isWhole), [false])
        _ = try await get()
        XCTAssertTrue(server.ranges.last!.hasPrefix("bytes="))
    }

    func testAStreamThatIsLeftEndsTheDownload() async throws {
        for try await progress in store.download(server.url) where progress.bytes > 100_000 { break }
        _ = try await get()
        XCTAssertTrue(server.ranges.last!.hasPrefix("bytes="))
    }

    func testMeteredNetworksAreRefusedUnlessAllowed() async throws {
        let sentence = await expect(.invalidState) { try await self.store.get(self.server.url, isMetered: { true }) }
        XCTAssertTrue(sentence.contains("metered"))
        XCTAssertEqual(server.ranges, [])
        let refusing = try ModelStore(folder: folder, client: Refusing())
        await expect(.invalidState) { try await refusing.get(self.server.url) }
        _ = try await store.get(server.url, options: DownloadOptions(allowsMetered: true), isMetered: { true })
    }

    func testRefusesWhatItShould() async throws {
        let full = await expect(.fileUnwritable) { try await self.get(DownloadOptions(keepFreeBytes: .max / 2)) }
        XCTAssertTrue(full.contains("are free"))
        await expect(.fileUnreadable) { try await self.get(DownloadOptions(sha256: String(repeating: "0", count: 64))) }
        server.withState { $0.file = Data("GGUF and more of it, so that there is a header of sixty-four bytes".utf8) }
        let kind = await expect(.invalidProgram) { try await self.get() }
        XCTAssertTrue(kind.contains("GGUF"))
        await expect(.invalidArgument) { try await self.store.get("nothing") }
        await expect(.invalidArgument) { try await self.get(DownloadOptions(sha256: "x")) }
        await expect(.invalidArgument) { try await self.store.get("http://127.0.0.1/a b.mote") }
        let left = try await store.list()
        XCTAssertEqual(left, [])
        store.close()
        await expect(.closed) { try await self.store.list() }
        await expect(.closed) { try await self.get() }
    }

    func testAFileThatThisDeviceCannotRunIsRefusedByItsFirstBytes() async throws {
        var other = content
        other[8] = 99  // another version
        other += Data(count: 8 << 20)
        server.withState { $0.file = other }
        server.fail(.slow)
        do {
            _ = try await get()
            XCTFail("must be refused")
        } catch is MoteError {}
        XCTAssertLessThan(server.sentBytes, 2 << 20)
    }

    #if os(Linux) || os(macOS)
        func testDownloadsThatAreKilledGoOnInAnotherProcess() async throws {
            let bundle = Bundle(for: StoreTests.self).bundleURL
            let products = bundle.pathExtension == "xctest" ? bundle.deletingLastPathComponent() : bundle
            let pull = products.appendingPathComponent("mote-pull")
            try XCTSkipUnless(FileManager.default.isExecutableFile(atPath: pull.path), "\(pull.path) is built where MOTE_TEST_SHAPES is set")
            var random = Random(seed: 3)
            for round in 0..<12 {
                let process = Process()
                process.executableURL = pull
                process.arguments = [server.url, folder.path]
                let from = server.sentBytes
                let until = from + Int.random(in: 0..<content.count, using: &random)
                if round % 3 == 0 { server.fail(.cut) }
                try process.run()
                while process.isRunning, server.sentBytes < until { usleep(200) }
                kill(process.processIdentifier, SIGKILL)
                process.waitUntilExit()
            }
            let url = try await get()
            XCTAssertEqual(try Data(contentsOf: url), content)
            XCTAssertTrue(server.ranges.contains { $0.hasPrefix("bytes=") })
        }
    #endif
}

/// A network that is metered.
private struct Refusing: DownloadClient {
    func answer(to request: DownloadRequest) async throws -> DownloadAnswer {
        if request.allowsMetered { fatalError("is not asked so") }
        throw MeteredNetworkError()
    }
}
