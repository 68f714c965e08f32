import Foundation

/// A chat as the list of chats shows it.
public struct SavedChat: Hashable, Sendable, Identifiable {
    public let id: String
    public var title: String
    /// The name of an ``InstalledModel``: the app's folder has another path after an update.
    public let model: String
    public var settings: ChatSettings
    public let changed: Date
}

/// Chats in a folder, one folder each: chat.json and session.mote-session. A file is there whole or not at all. Thread safety: any
/// thread, for different chats.
public struct ChatStore: Sendable {
    private struct File: Codable {
        let title: String
        let model: String
        let instructions: String
        let values: [String: String]
        /// A JSON list.
        let messages: String
    }

    private let folder: URL

    public init(folder: URL) {
        self.folder = folder
    }

    /// The last one changed first. What cannot be read is left out.
    public func list() -> [SavedChat] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.compactMap(read).sorted { $0.changed > $1.changed }
    }

    public func create(model: String, settings: ChatSettings = ChatSettings()) -> SavedChat {
        SavedChat(id: UUID().uuidString, title: "", model: model, settings: settings, changed: Date())
    }

    /// A JSON list; nil: the chat was never saved.
    public func messages(_ id: String) -> String? { file(id)?.messages }

    /// Where the chat's session is, if it was saved.
    public func sessionURL(_ id: String) -> URL { folder.appendingPathComponent(id).appendingPathComponent("session.mote-session") }

    /// messages: a JSON list   Errors: those of writing a file
    public func save(_ chat: SavedChat, messages: String) throws {
        let file = File(
            title: chat.title, model: chat.model, instructions: chat.settings.instructions, values: chat.settings.values, messages: messages)
        try FileManager.default.createDirectory(at: url(chat.id).deletingLastPathComponent(), withIntermediateDirectories: true)
        try JSONEncoder().encode(file).write(to: url(chat.id), options: .atomic)
    }

    public func delete(_ id: String) {
        try? FileManager.default.removeItem(at: folder.appendingPathComponent(id))
    }

    private func url(_ id: String) -> URL { folder.appendingPathComponent(id).appendingPathComponent("chat.json") }

    private func file(_ id: String) -> File? {
        (try? Data(contentsOf: url(id))).flatMap { try? JSONDecoder().decode(File.self, from: $0) }
    }

    private func read(_ id: String) -> SavedChat? {
        guard let file = file(id) else { return nil }
        let changed = (try? FileManager.default.attributesOfItem(atPath: url(id).path))?[.modificationDate] as? Date
        let settings = ChatSettings(instructions: file.instructions, values: file.values)
        return SavedChat(id: id, title: file.title, model: file.model, settings: settings, changed: changed ?? .distantPast)
    }
}
