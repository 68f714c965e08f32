import XCTest

/// Waits for something that a task brings about.
@MainActor
func until(_ what: String = #function, _ condition: @MainActor () -> Bool) async throws {
    for _ in 0..<6000 {
        if condition() { return }
        try await Task.sleep(nanoseconds: 10_000_000)
    }
    XCTFail("\(what): nothing happens")
}
