import Foundation
import Mote
import Observation

public enum Role: String, Sendable {
    case system, user, assistant, tool
}

public struct ShownMessage: Hashable, Sendable {
    public let role: Role
    public internal(set) var text: String
    public internal(set) var reasoning = ""
}

public struct Attachment: Hashable, Sendable {
    public let name: String
    public let text: String
}

/// What a screen of a chat shows.
public struct ConversationState: Equatable, Sendable {
    public internal(set) var title = ""
    /// Without the system prompt.
    public internal(set) var messages: [ShownMessage] = []
    /// Of the reply that is being written; nil: none is.
    public internal(set) var draft: ShownMessage?
    /// Texts that go with the next message.
    public internal(set) var attachments: [Attachment] = []
    public internal(set) var statistics: ChatStatistics?
    /// A sentence for the user.
    public internal(set) var error: String?

    public var isWriting: Bool { draft != nil }
    public var canRegenerate: Bool { !isWriting && !messages.isEmpty }
}

/// A chat that survives the app: its messages and settings are written after each turn, its session when it leaves the screen. One of
/// send, regenerate and edit runs at a time, and others meanwhile do nothing.
@MainActor
@Observable
public final class Conversation {
    private static let mostAttachedBytes = 256 << 10

    public private(set) var state: ConversationState
    @ObservationIgnored private let chat: Chat
    @ObservationIgnored private let store: ChatStore
    @ObservationIgnored private var saved: SavedChat
    @ObservationIgnored private var turn: Task<Void, Never>?
    /// A turn, or the writing of the session.
    @ObservationIgnored private var isBusy = false

    public var id: String { saved.id }
    public var settings: ChatSettings { saved.settings }

    private init(_ chat: Chat, _ store: ChatStore, _ saved: SavedChat) throws {
        self.chat = chat
        self.store = store
        self.saved = saved
        state = ConversationState(title: saved.title, messages: Self.shown(try chat.messages))
    }

    /// A new chat, or one that was saved: with its session's file nothing is computed again. Errors: `MoteError`
    public static func open(_ model: Model, _ store: ChatStore, _ saved: SavedChat) async throws -> Conversation {
        let messages = store.messages(saved.id)
        let instructions = saved.settings.instructions
        let chat = try await model.chat(instructions: messages == nil && !instructions.isEmpty ? instructions : nil)
        do {
            if let messages { try chat.set(.messages, messages) }
            try await restore(chat, store.sessionURL(saved.id))
            return try Conversation(chat, store, saved)
        } catch {
            chat.close()
            throw error
        }
    }

    /// A session of another model, or of another version of Mote, is computed again.
    private static func restore(_ chat: Chat, _ file: URL) async throws {
        guard FileManager.default.fileExists(atPath: file.path) else { return }
        do {
            try await chat.session.restore(from: file)
        } catch is MoteError {
            try? FileManager.default.removeItem(at: file)
        }
    }

    public func attach(_ name: String, _ text: String) { state.attachments.append(Attachment(name: name, text: text)) }

    /// The text of a file. What cannot be attached is said in the state's error.
    public func attach(contentsOf file: URL) {
        let name = file.lastPathComponent
        do {
            let size = try file.resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0
            guard size <= Self.mostAttachedBytes else { throw Refusal("\(name): must be at most \(Self.mostAttachedBytes >> 10) KiB") }
            guard let text = String(data: try Data(contentsOf: file), encoding: .utf8) else { throw Refusal("\(name): must be text in UTF-8") }
            attach(name, text)
        } catch {
            state.error = error.localizedDescription
        }
    }

    public func detach(_ index: Int) {
        if state.attachments.indices.contains(index) { state.attachments.remove(at: index) }
    }

    public func send(_ text: String) {
        let content = state.attachments.map(\.message).joined() + text
        if content.allSatisfy(\.isWhitespace) { return }
        begin(ShownMessage(role: .user, text: content)) { [chat, saved] in chat.stream(content, options: try saved.settings.options()) }
    }

    /// Another reply in the place of the last one.
    public func regenerate() {
        begin(nil) { [chat, saved] in chat.regenerate(options: try saved.settings.options()) }
    }

    /// Replaces a message of the user and has it answered anew. index: of the messages that are shown
    public func edit(_ index: Int, _ text: String) {
        begin(nil) { [self] in
            let options = try settings.options()
            try chat.edit(index + numHidden, ["role": "user", "content": .text(text)])
            state.messages = Self.shown(try chat.messages)
            return chat.reply(options: options)
        }
    }

    /// What was written stays.
    public func stop() { turn?.cancel() }

    /// Waits for the turn that runs.
    public func idle() async { await turn?.value }

    /// Writes the session, so that going on costs no computation; for when the screen goes away. Errors: `MoteError`
    public func persist() async throws {
        await idle()
        if isBusy { return }
        isBusy = true
        defer { isBusy = false }
        try store.save(saved, messages: try chat.messages)
        try await chat.session.save(to: store.sessionURL(saved.id))
    }

    /// The conversation as Markdown.
    public func export() -> String {
        let messages = state.messages.map { "\n**\($0.role.rawValue)**\n\n\($0.text)\n" }
        return "# \(state.title)\n" + messages.joined()
    }

    /// From the next reply on. Nothing happens while one is written.
    public func change(_ settings: ChatSettings) {
        if isBusy { return }
        do {
            let all = try JSONSerialization.jsonObject(with: Data(try chat.messages.utf8)) as? [Any] ?? []
            let system: [Any] = settings.instructions.isEmpty ? [] : [["role": "system", "content": settings.instructions]]
            let messages = try JSONSerialization.data(withJSONObject: system + all.dropFirst(numHidden))
            try chat.set(.messages, String(decoding: messages, as: UTF8.self))
            saved.settings = settings
            try store.save(saved, messages: try chat.messages)
        } catch {
            state.error = error.localizedDescription
        }
    }

    /// Stops what runs.
    public func close() {
        stop()
        Task { [chat, turn] in
            await turn?.value
            chat.close()
        }
    }

    private typealias Reply = AsyncThrowingStream<ChatEvent, any Error>

    private func begin(_ sent: ShownMessage?, _ reply: @escaping @MainActor () throws -> Reply) {
        if isBusy { return }
        isBusy = true
        let before = state
        if let sent { state.messages.append(sent) }
        state.draft = ShownMessage(role: .assistant, text: "")
        state.attachments = []
        state.error = nil
        turn = Task {
            finish(before, sent, await run(reply))
            isBusy = false
        }
    }

    /// Returns what went wrong.
    private func run(_ reply: @MainActor () throws -> Reply) async -> String? {
        do {
            for try await event in try reply() { show(event) }
            return nil
        } catch is CancellationError {
            return nil
        } catch {
            return error.localizedDescription
        }
    }

    private func show(_ event: ChatEvent) {
        switch event {
        case .content(let text): state.draft?.text += text
        case .reasoning(let text): state.draft?.reasoning += text
        case .done(let statistics): state.statistics = statistics
        case .toolCall: break
        }
    }

    /// The chat knows what became of the turn: a message that got no reply is not its own any more.
    private func finish(_ before: ConversationState, _ sent: ShownMessage?, _ problem: String?) {
        state.draft = nil
        state.error = problem
        guard let json = try? chat.messages else { return }
        state.messages = Self.shown(json)
        if sent != nil, state.messages.count <= before.messages.count { state.attachments = before.attachments }
        if state.title.isEmpty { state.title = Self.title(state.messages) }
        saved.title = state.title
        do {
            try store.save(saved, messages: json)
        } catch {
            state.error = problem ?? error.localizedDescription
        }
    }

    private var numHidden: Int { saved.settings.instructions.isEmpty ? 0 : 1 }

    private static func shown(_ json: String) -> [ShownMessage] {
        JSON(json).list.map { message in
            let role = Role(rawValue: message["role"].text) ?? .tool
            return ShownMessage(role: role, text: message["content"].text, reasoning: message["reasoning_content"].text)
        }.filter { $0.role != .system }
    }

    private static func title(_ messages: [ShownMessage]) -> String {
        let line = messages.first?.text.split(separator: "\n", omittingEmptySubsequences: false).first ?? ""
        return line.prefix(60).trimmingCharacters(in: .whitespaces)
    }
}

extension Attachment {
    /// As a part of a message.
    fileprivate var message: String {
        var text = text[...]
        while text.last?.isWhitespace == true { text.removeLast() }
        return "File \"\(name)\":\n```\n\(text)\n```\n\n"
    }
}
