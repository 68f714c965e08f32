import Foundation
import Mote

/// What outlives screens: one model and one chat at a time, and the files.
@MainActor
public final class Workspace {
    public let chats: ChatStore
    public let library: ModelLibrary
    private var model: (name: String, Model)?
    private var conversation: Conversation?
    /// The last of those that open something, one after the other.
    private var last: Task<Void, Never>?

    /// folder: of the app's documents   client: what downloads
    public init(folder: URL, client: any DownloadClient = URLSessionDownloads()) throws {
        chats = ChatStore(folder: folder.appendingPathComponent("chats"))
        let store = try ModelStore(folder: folder.appendingPathComponent("store"), client: client)
        library = ModelLibrary(folder: folder.appendingPathComponent("models"), store: store)
    }

    /// Errors: `MoteError`
    public func model(_ name: String) async throws -> Model {
        try await inTurn { [self] in try await opened(name) }
    }

    /// Errors: `MoteError`
    public func conversation(_ saved: SavedChat) async throws -> Conversation {
        try await inTurn { [self] in
            if let conversation, conversation.id == saved.id { return conversation }
            let model = try await opened(saved.model)
            conversation?.close()
            conversation = nil
            let next = try await Conversation.open(model, chats, saved)
            conversation = next
            return next
        }
    }

    public func delete(_ saved: SavedChat) {
        if conversation?.id == saved.id {
            conversation?.close()
            conversation = nil
        }
        chats.delete(saved.id)
    }

    private func opened(_ name: String) async throws -> Model {
        if let model, model.name == name { return model.1 }
        conversation?.close()
        conversation = nil
        model = nil
        let next = try await Model(contentsOf: library.url(of: name))
        model = (name, next)
        return next
    }

    private func inTurn<T: Sendable>(_ body: @escaping @MainActor () async throws -> T) async throws -> T {
        let before = last
        let task = Task {
            await before?.value
            return try await body()
        }
        last = Task { _ = await task.result }
        return try await task.value
    }
}
