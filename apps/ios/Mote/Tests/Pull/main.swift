// mote-pull URL FOLDER: downloads into a store, for tests that end it.
import Foundation
import Mote

let store = try ModelStore(folder: URL(fileURLWithPath: CommandLine.arguments[2]))
print(try await store.get(CommandLine.arguments[1]).path)
