import Mote
import MoteChat
import SwiftUI
import UIKit

@main
struct ChatApp: App {
    @UIApplicationDelegateAdaptor(Delegate.self) private var delegate

    var body: some Scene {
        WindowGroup {
            switch delegate.workspace {
            case .success(let workspace): ChatsView(workspace: workspace, library: workspace.library)
            case .failure(let error): ContentUnavailableView(error.localizedDescription, systemImage: "exclamationmark.triangle")
            }
        }
    }
}

/// Keeps what outlives windows, and takes up downloads that the system went on with.
@MainActor
final class Delegate: NSObject, UIApplicationDelegate {
    private static let session = "ai.mote.chat.downloads"

    private let downloads = BackgroundDownloads(configuration: .background(withIdentifier: Delegate.session))
    private(set) lazy var workspace = Result { try Workspace(folder: .applicationSupportDirectory, client: downloads) }

    func application(_ application: UIApplication, didFinishLaunchingWithOptions options: [UIApplication.LaunchOptionsKey: Any]?) -> Bool {
        try? workspace.get().library.resume()
        return true
    }

    func application(
        _ application: UIApplication, handleEventsForBackgroundURLSession identifier: String, completionHandler: @escaping () -> Void
    ) {
        let completion = MainActorCall(completionHandler)
        downloads.whenEventsEnd { completion() }
    }
}

/// A call that UIKit wants from the main thread, where `whenEventsEnd` makes it.
private struct MainActorCall: @unchecked Sendable {
    private let call: () -> Void

    init(_ call: @escaping () -> Void) {
        self.call = call
    }

    func callAsFunction() { call() }
}
