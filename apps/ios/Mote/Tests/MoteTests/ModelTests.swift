import Foundation
import Mote
import XCTest

final class ModelTests: XCTestCase {
    func testTellsWhatItIs() async throws {
        let model = try await demo()
        XCTAssertTrue(try model.info.generates)
        XCTAssertFalse(try model.info.embeds)
        XCTAssertTrue(try model.info.hasChatTemplate)
        XCTAssertTrue(try model.describe().hasPrefix("{"))
        XCTAssertFalse(try model.chatTemplate().isEmpty)
        XCTAssertTrue(try model.generationConfig().contains("eos_token_id"))
        try await model.checkSegments()
        let file = try await MoteLibrary.describeFile(demoURL)
        XCTAssertTrue(file.contains("targets"))
        XCTAssertFalse(MoteLibrary.version.isEmpty)
        XCTAssertTrue(try MoteLibrary.describeOptions().contains("top_p"))
        XCTAssertTrue(try MoteLibrary.describeBuild().contains("instruction_sets"))
        XCTAssertTrue(try MoteLibrary.describeKernels().contains("choices"))
    }

    func testTextIsExact() async throws {
        let model = try await demo()
        for text in ["", "plain", "a\u{0}b\u{0}", "\u{1F600} and \u{E9}\u{4E2D}\u{FFFF}", "e\u{301}\u{1F600}\u{1F600}"] {
            let ids = try model.tokens(of: text, addSpecial: false, parseSpecial: false)
            XCTAssertEqual(Array(try model.text(of: ids, skipSpecial: false).utf8), Array(text.utf8))
        }
        let long = String(repeating: "word ", count: 2000)
        XCTAssertEqual(try model.text(of: model.tokens(of: long, addSpecial: false)), long)
    }

    func testTellsProgressAndMayBeCancelled() async throws {
        let fractions = Collected<Double>()
        try await Model(contentsOf: demoURL) { fractions.append($0) }.close()
        XCTAssertEqual(fractions.all.last, 1)
        XCTAssertEqual(fractions.all, fractions.all.sorted())
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await demo()
        }
        do {
            _ = try await task.value
            XCTFail("a task that is cancelled opens nothing")
        } catch is CancellationError {}
    }

    func testOpensAPartOfAFile() async throws {
        let alone = try await demo().session().text()
        let bytes = try demoURL.resourceValues(forKeys: [.fileSizeKey]).fileSize!
        let lines = Collected<String>()
        try MoteLibrary.log(.info) { lines.append($1) }
        // Where a part can be mapped, and where it has to be read, which is said.
        for offset in [65536, 1] {
            let file = try temporaryFolder(self).appendingPathComponent("pack")
            try (Data(count: offset) + Data(contentsOf: demoURL) + Data(count: 7)).write(to: file)
            let handle = try FileHandle(forReadingFrom: file)
            let model = try await Model(fileDescriptor: handle.fileDescriptor, offset: Int64(offset), length: Int64(bytes))
            try handle.close()
            let text = try await model.session().text()
            XCTAssertEqual(text, alone)
        }
        try MoteLibrary.log(.error, to: nil)
        XCTAssertEqual(lines.all.filter { $0.contains("is read into memory") }.count, 1)
    }

    func testRefusesBadFiles() async throws {
        let folder = try temporaryFolder(self)
        let missing = await expect(.fileNotFound) { try await Model(contentsOf: folder.appendingPathComponent("\u{E9}.mote")) }
        XCTAssertTrue(missing.contains("\u{E9}.mote"), missing)
        let file = folder.appendingPathComponent("file.mote")
        try Data("not a model".utf8).write(to: file)
        await expect(.invalidProgram) { try await Model(contentsOf: file) }
        await expect(.fileUnreadable) { try await Model(contentsOf: folder) }
        let whole = try Data(contentsOf: demoURL)
        try whole.prefix(whole.count / 2).write(to: file)
        await expect(.invalidProgram) { try await Model(contentsOf: file) }
    }

    func testRefusesBadOptionsAndArguments() async throws {
        let model = try await demo()
        let unknown = await expect(.invalidArgument) { try await model.session(options: ["no_such_option": 1]) }
        XCTAssertTrue(unknown.contains("no_such_option"), unknown)
        await expect(.invalidArgument) { try await model.session(options: ["top_p": 0.5]) }
        await expect(.invalidArgument) { try await model.session(options: ["context_length": -1]) }
        let session = try await model.session(options: ["context_length": 32])
        await expect(.invalidArgument) { try await session.text(["top_p": 2]) }
        await expect(.invalidArgument) { try await session.append([-1]) }
        await expect(.contextFull) { try await session.append([Int32](repeating: 0, count: 100)) }
        await expect(.invalidArgument) { try await session.rewind(to: 7) }
        await expect(.invalidArgument) { try await session.logits() }
        await expect(.invalidArgument) { try await model.embedder() }
        await expect(.invalidProgram) { try await model.adapter(contentsOf: demoURL) }
    }

    func testCallsAfterCloseSaySo() async throws {
        let model = try await demo()
        let session = try await model.session()
        let chat = try await model.chat()
        for _ in 0..<2 {
            session.close()
            chat.close()
            model.close()
        }
        let message = await expect(.closed) { try model.info }
        XCTAssertEqual(message, "the model is closed")
        await expect(.closed) { try await model.session() }
        await expect(.closed) { try session.tokens }
        await expect(.closed) { try await session.append("x") }
        await expect(.closed) { try await session.text() }
        await expect(.closed) { try chat.messages }
        await expect(.closed) { try await chat.respond(to: "Hello") }
        await expect(.closed) { try chat.session.tokens }
        XCTAssertTrue(model.isClosed && session.isClosed && chat.isClosed)
        session.cancel()
    }

    func testASessionOutlivesItsModel() async throws {
        let session = try await demo().session()
        let text = try await session.text()
        XCTAssertFalse(text.isEmpty)
    }
}

/// What callbacks are told.
final class Collected<Element: Sendable>: @unchecked Sendable {
    private let lock = NSLock()
    private var elements: [Element] = []

    var all: [Element] { lock.withLock { elements } }

    func append(_ element: Element) { lock.withLock { elements.append(element) } }
}
