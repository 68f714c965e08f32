// mote-pull URL FOLDER [SHA256]: downloads into a store, for tests that end it. The exit status is 3 for a refusal.
import Foundation
import Mote

let arguments = CommandLine.arguments
let store = try ModelStore(folder: URL(fileURLWithPath: arguments[2]))
do {
    print(try await store.get(arguments[1], options: DownloadOptions(sha256: arguments.count > 3 ? arguments[3] : nil)).path)
} catch let refused as MoteError {
    print("refused: \(refused.message)")
    exit(3)
}
