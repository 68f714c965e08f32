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
        let kind = await expect(.fileUnreadable) { try await Model(contentsOf: folder) }
        XCTAssertTrue(kind.contains("is a folder: must be a regular file"), kind)
        let whole = try Data(contentsOf: demoURL)
        try whole.prefix(whole.count / 2).write(to: file)
        await expect(.invalidProgram) { try await Model(contentsOf: file) }
    }

    func testRefusesAFileWithoutPermission() async throws {
        let file = try temporaryFolder(self).appendingPathComponent("secret.mote")
        try FileManager.default.copyItem(at: demoURL, to: file)
        try FileManager.default.setAttributes([.posixPermissions: 0], ofItemAtPath: file.path)
        // Root may read everything.
        let isRoot = geteuid() == 0
        if isRoot { seteuid(65534) }
        defer { if isRoot { seteuid(0) } }
        let message = await expect(.fileUnreadable) { try await Model(contentsOf: file) }
        XCTAssertTrue(message.contains("Permission denied"), message)
    }

    func testRefusesBadDescriptors() async throws {
        await expect(.invalidArgument) { try await Model(fileDescriptor: -1) }
        // What a provider gives that has the bytes from a network.
        let pipe = Pipe()
        let message = await expect(.fileUnreadable) { try await Model(fileDescriptor: pipe.fileHandleForReading.fileDescriptor) }
        XCTAssertTrue(message.contains("is a named pipe: must be a regular file"), message)
        let handle = try FileHandle(forReadingFrom: demoURL)
        await expect(.invalidArgument) { try await Model(fileDescriptor: handle.fileDescriptor, offset: 1 << 40) }
        await expect(.invalidArgument) { try await Model(fileDescriptor: handle.fileDescriptor, length: 1 << 40) }
    }

    #if os(Linux)
        func testRefusesWhatMemoryIsTooLittleFor() async throws {
            let file = try temporaryFolder(self).appendingPathComponent("large.mote")
            try Data().write(to: file)
            let handle = try FileHandle(forWritingTo: file)
            try handle.truncate(atOffset: 8 << 40)
            let message = await expect(.outOfMemory) { try await Model(contentsOf: file, options: ["mmap": false]) }
            XCTAssertTrue(message.contains("no memory for 8796093022208 bytes"), message)
        }
    #endif

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
        await expect(.invalidArgument) { try await session.move(to: "npu") }
        await expect(.invalidArgument) { try await session.logits() }
        await expect(.invalidArgument) { try await model.embedder() }
        await expect(.invalidProgram) { try await model.adapter(contentsOf: demoURL) }
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
