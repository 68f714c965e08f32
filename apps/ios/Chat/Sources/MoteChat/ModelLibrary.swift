import Foundation
import Mote
import Observation

/// A model that can be chatted with. bytes: of its file
public struct InstalledModel: Hashable, Sendable, Identifiable {
    public let name: String
    public let url: URL
    public let bytes: UInt64

    public var id: String { name }
}

/// The models of the app: files that were picked, and those of a store, which downloads them. One download at a time; it goes on when the
/// app is started anew.
@MainActor
@Observable
public final class ModelLibrary {
    public private(set) var models: [InstalledModel] = []
    /// Of the download that runs; nil: none does.
    public private(set) var progress: DownloadProgress?
    public private(set) var isDownloading = false
    /// A sentence for the user.
    public private(set) var error: String?
    @ObservationIgnored private let folder: URL
    @ObservationIgnored private let store: ModelStore
    @ObservationIgnored private var download: Task<Void, Never>?

    private static let ending = "mote"

    private struct Wanted: Codable {
        let reference: String
        let allowsMetered: Bool
    }

    /// folder: of picked files, which need not exist
    public init(folder: URL, store: ModelStore) {
        self.folder = folder
        self.store = store
    }

    public func refresh() async {
        do {
            let stored = try await store.list().filter(\.isWhole).map { InstalledModel(name: $0.name, url: $0.url, bytes: $0.bytes) }
            models = (picked() + stored).sorted { $0.name < $1.name }
        } catch {
            self.error = error.localizedDescription
        }
    }

    /// The file of a model's name. Errors: `MoteError` if it is not there any more
    public func url(of name: String) async throws -> URL {
        if let model = picked().first(where: { $0.name == name }) { return model.url }
        return try await store.find(name)
    }

    /// Copies a file that was picked, and looks whether it works on this device. Returns nil, with a sentence in ``error`` and nothing left
    /// behind, if it does not.
    @discardableResult
    public func add(_ file: URL) async -> InstalledModel? {
        error = nil
        let folder = folder
        let result = await Task.detached { try await Self.copy(file, folder) }.result
        await refresh()
        do {
            return try result.get()
        } catch {
            self.error = error.localizedDescription
            return nil
        }
    }

    /// Downloads a model, or goes on with what an earlier download has left. Nothing happens while another one runs.
    /// reference: a hub's id, or an URL
    public func get(_ reference: String, allowsMetered: Bool = false) {
        if isDownloading { return }
        let wanted = Wanted(reference: reference.trimmingCharacters(in: .whitespacesAndNewlines), allowsMetered: allowsMetered)
        isDownloading = true
        error = nil
        remember(wanted)
        download = Task { await run(wanted) }
    }

    /// Goes on with the download that ran when the app ended.
    public func resume() {
        guard let wanted = try? JSONDecoder().decode(Wanted.self, from: Data(contentsOf: note)) else { return }
        get(wanted.reference, allowsMetered: wanted.allowsMetered)
    }

    /// What has come stays.
    public func stop() { download?.cancel() }

    /// Waits for the download that runs.
    public func idle() async { await download?.value }

    public func remove(_ model: InstalledModel) async {
        do {
            if picked().contains(model) {
                try FileManager.default.removeItem(at: model.url)
            } else {
                try await store.remove(model.name)
            }
        } catch {
            self.error = error.localizedDescription
        }
        await refresh()
    }

    private func run(_ wanted: Wanted) async {
        do {
            let options = DownloadOptions(allowsMetered: wanted.allowsMetered)
            for try await progress in store.download(wanted.reference, options: options) { self.progress = progress }
        } catch is CancellationError {
            // As the user wants it.
        } catch {
            self.error = error.localizedDescription
        }
        progress = nil
        remember(nil)
        await refresh()
        isDownloading = false
    }

    private var note: URL { folder.appendingPathComponent("download.json") }

    private func remember(_ wanted: Wanted?) {
        guard let wanted, let json = try? JSONEncoder().encode(wanted) else {
            try? FileManager.default.removeItem(at: note)
            return
        }
        try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try? json.write(to: note, options: .atomic)
    }

    private func picked() -> [InstalledModel] {
        let files = (try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)) ?? []
        return files.filter { $0.pathExtension == Self.ending }.map { Self.model($0) }
    }

    nonisolated private static func model(_ file: URL) -> InstalledModel {
        let bytes = (try? FileManager.default.attributesOfItem(atPath: file.path))?[.size] as? NSNumber
        return InstalledModel(name: file.deletingPathExtension().lastPathComponent, url: file, bytes: bytes?.uint64Value ?? 0)
    }

    nonisolated private static func copy(_ file: URL, _ folder: URL) async throws -> InstalledModel {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let part = folder.appendingPathComponent(UUID().uuidString + ".part")
        defer { try? FileManager.default.removeItem(at: part) }
        try FileManager.default.copyItem(at: file, to: part)
        let name = file.deletingPathExtension().lastPathComponent
        if let reason = try await reasonAgainst(part) { throw MoteError(code: .unsupportedBackend, message: "\(name): \(reason)") }
        let place = free(name, folder)
        try FileManager.default.moveItem(at: part, to: place)
        return model(place)
    }

    nonisolated private static func free(_ name: String, _ folder: URL) -> URL {
        var plain = String(name.map { $0.isLetter || $0.isNumber || "._ -".contains($0) ? $0 : "_" })
        while plain.first == "." { plain.removeFirst() }
        if plain.isEmpty { plain = "model" }
        let places = (1...).lazy.map { folder.appendingPathComponent($0 == 1 ? plain : "\(plain) \($0)").appendingPathExtension("mote") }
        return places.first { !FileManager.default.fileExists(atPath: $0.path) }!
    }

    /// nil: it works here. Errors: `MoteError` for what is no such file
    nonisolated private static func reasonAgainst(_ file: URL) async throws -> String? {
        let description = JSON(try await MoteLibrary.describeFile(file))
        if !description["target"].text.isEmpty { return nil }
        return description["targets"].members.map { "\($0.name): \($0.value.text)" }.joined(separator: "; ")
    }
}
