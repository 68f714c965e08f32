import Foundation
import Mote
import MoteChat
import XCTest

@MainActor
final class ModelsTests: XCTestCase {
    private var folder: URL!

    override func setUp() async throws { folder = try temporaryFolder(self) }

    private var models: URL { folder.appendingPathComponent("models") }

    private func library(_ client: any DownloadClient = OneFile()) throws -> ModelLibrary {
        ModelLibrary(folder: models, store: try ModelStore(folder: folder.appendingPathComponent("store"), client: client))
    }

    private func files(_ folder: URL) -> [String] { ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []).sorted() }

    func testAPickedFileIsCopied() async throws {
        let library = try library()
        let picked = folder.appendingPathComponent("my: demo.mote")
        try FileManager.default.copyItem(at: demoURL, to: picked)
        let first = await library.add(picked)
        let second = await library.add(picked)
        XCTAssertEqual([first, second].map { $0?.name }, ["my_ demo", "my_ demo 2"])
        XCTAssertEqual(library.models, [first, second].compactMap { $0 })
        let url = try await library.url(of: "my_ demo")
        XCTAssertEqual(try Data(contentsOf: url), try Data(contentsOf: demoURL))
        await library.remove(try XCTUnwrap(first))
        XCTAssertEqual(library.models, [second].compactMap { $0 })
        XCTAssertNil(library.error)
    }

    func testWhatIsNoModelLeavesNothingBehind() async throws {
        let library = try library()
        let file = folder.appendingPathComponent("x.mote")
        try Data("hello".utf8).write(to: file)
        let added = await library.add(file)
        XCTAssertNil(added)
        XCTAssertEqual(library.error?.isEmpty, false)
        XCTAssertEqual(files(models), [])
    }

    func testDownloadsFindsAndRemoves() async throws {
        let library = try library()
        library.get(" https://models.example/tiny.mote\n")
        library.get("https://models.example/other.mote")
        XCTAssertTrue(library.isDownloading)
        await library.idle()
        XCTAssertNil(library.error)
        XCTAssertNil(library.progress)
        XCTAssertEqual(library.models.map(\.name), ["models.example/tiny:tiny"])
        let url = try await library.url(of: "models.example/tiny:tiny")
        XCTAssertEqual(try Data(contentsOf: url), try Data(contentsOf: demoURL))
        XCTAssertEqual(files(models), [], "no download is noted any more")
        await library.remove(library.models[0])
        XCTAssertEqual(library.models, [])
        do {
            _ = try await library.url(of: "models.example/tiny:tiny")
            XCTFail("is not there any more")
        } catch let error as MoteError {
            XCTAssertEqual(error.code, .fileNotFound)
        }
    }

    func testWhatCannotBeDownloadedIsSaid() async throws {
        let library = try library()
        library.get("nothing")
        await library.idle()
        XCTAssertTrue(library.error?.contains("org/name") == true, library.error ?? "")
        XCTAssertFalse(library.isDownloading)
    }

    func testADownloadThatTheAppsEndBrokeOffGoesOn() async throws {
        let stalled = try library(OneFile(stallsAfter: 1_000_000))
        stalled.get("https://models.example/tiny.mote", allowsMetered: true)
        try await until { (stalled.progress?.bytes ?? 0) >= 1_000_000 }
        // Of an app that is ended, the note stays and nobody holds the download.
        let note = try Data(contentsOf: models.appendingPathComponent("download.json"))
        stalled.stop()
        await stalled.idle()
        try note.write(to: models.appendingPathComponent("download.json"))
        let client = OneFile()
        let library = try library(client)
        library.resume()
        XCTAssertTrue(library.isDownloading)
        await library.idle()
        XCTAssertEqual(library.models.count, 1)
        XCTAssertEqual(client.requests.map(\.allowsMetered), [true])
        XCTAssertTrue(client.requests[0].headers.contains(.init("Range", "bytes=1000000-")), "\(client.requests)")
        library.resume()
        XCTAssertFalse(library.isDownloading)
    }

    func testMeasures() async throws {
        let model = try await Model(contentsOf: demoURL)
        let result = try await Benchmark(model).run(promptTokens: 32, newTokens: 16)
        XCTAssertTrue(result.prefillSpeed > 0 && result.decodeSpeed > 0 && result.firstTokenMilliseconds > 0)
        XCTAssertGreaterThan(result.privateBytes, 0)
        let clock = Clock()
        let runs = BenchmarkRuns { Benchmark(model) { clock.next() } }
        runs.sustain(seconds: 0.2, pointEvery: 2)
        await runs.idle()
        XCTAssertEqual(runs.points.first?.tokensPerSecond ?? 0, 2, accuracy: 1e-9)
        XCTAssertEqual(runs.points.prefix(2).map(\.seconds), Array([2.0, 4.0].prefix(runs.points.count)))
        XCTAssertTrue(runs.export().hasPrefix("seconds,tokens_per_second\n2.0,2.0\n"))
        XCTAssertNil(runs.error)
    }

    func testABenchmarkEndsWhenAskedOrWhenAnotherBegins() async throws {
        let model = try await Model(contentsOf: demoURL)
        let runs = BenchmarkRuns { Benchmark(model) }
        runs.sustain(seconds: 600, pointEvery: 0.01)
        try await until { runs.points.count > 1 }
        runs.measure(promptTokens: 8, newTokens: 4)
        try await until { runs.result != nil }
        await runs.idle()
        XCTAssertFalse(runs.isRunning)
        runs.sustain()
        XCTAssertTrue(runs.isRunning)
        runs.stop()
        await runs.idle()
        XCTAssertFalse(runs.isRunning)
        XCTAssertNil(runs.error)
    }

    func testTellsWhatRunsTheModelAndWhy() async throws {
        XCTAssertTrue(Set(["CPU", "CPU features", "Mote"]).isSubset(of: try deviceFacts(nil).map(\.label)))
        let model = try await Model(contentsOf: demoURL)
        let facts = try deviceFacts(model)
        XCTAssertTrue(facts.contains { $0.label == "Runs on" && $0.value == "cpu" }, "\(facts)")
        XCTAssertTrue(facts.contains { $0.label == "Target cpu" && $0.value == "works here" })
        XCTAssertTrue(facts.contains { $0.label.hasPrefix("linear") || $0.value.contains("int8") }, "\(facts)")
    }

    func testOneModelAndOneChatAtATime() async throws {
        let workspace = try Workspace(folder: folder, client: OneFile())
        let added = await workspace.library.add(demoURL)
        let name = try XCTUnwrap(added?.name)
        let saved = workspace.chats.create(model: name, settings: ChatSettings(values: ["max_new_tokens": "4"]))
        try workspace.chats.save(saved, messages: "[]")
        async let first = workspace.conversation(saved)
        async let again = workspace.conversation(saved)
        let (a, b) = try await (first, again)
        XCTAssertTrue(a === b)
        let model = try await workspace.model(name)
        let same = try await workspace.model(name)
        XCTAssertTrue(model === same)
        a.send("Hello")
        await a.idle()
        XCTAssertEqual(a.state.messages.count, 2)
        let other = try await workspace.conversation(workspace.chats.create(model: name))
        XCTAssertFalse(other === a)
        workspace.delete(saved)
        XCTAssertEqual(workspace.chats.list(), [])
        do {
            _ = try await workspace.model("gone/model")
            XCTFail("is not there")
        } catch let error as MoteError {
            XCTAssertEqual(error.code, .fileNotFound)
        }
    }
}

/// Half a second later at each look.
private final class Clock: @unchecked Sendable {
    private let lock = NSLock()
    private var seconds = 0.0

    func next() -> Double {
        lock.withLock {
            defer { seconds += 0.5 }
            return seconds
        }
    }
}

/// A network where every address has the demo model.
private final class OneFile: DownloadClient, @unchecked Sendable {
    private let lock = NSLock()
    private var asked: [DownloadRequest] = []
    private let stallsAfter: Int

    var requests: [DownloadRequest] { lock.withLock { asked } }

    init(stallsAfter: Int = .max) {
        self.stallsAfter = stallsAfter
    }

    func answer(to request: DownloadRequest) async throws -> DownloadAnswer {
        lock.withLock { asked.append(request) }
        let content = try Data(contentsOf: demoURL)
        let range = request.headers.first { $0.name == "Range" }?.value
        let from = range.flatMap { Int($0.dropFirst(6).dropLast()) } ?? 0
        var headers = [DownloadRequest.Header("ETag", "\"1\""), .init("Content-Length", "\(content.count - from)")]
        if from > 0 { headers.append(.init("Content-Range", "bytes \(from)-\(content.count - 1)/\(content.count)")) }
        let pieces = stride(from: from, to: content.count, by: 100_000).map { content[$0..<min($0 + 100_000, content.count)] }
        let stallsAfter = stallsAfter
        let body = AsyncThrowingStream<DownloadAnswer.Part, any Error> { continuation in
            for piece in pieces where piece.startIndex < stallsAfter { continuation.yield(.bytes(Data(piece))) }
            if content.count <= stallsAfter { continuation.finish() }
        }
        return DownloadAnswer(status: from > 0 ? 206 : 200, headers: headers, body: body)
    }
}
