import Mote
import MoteChat
import SwiftUI

/// What this device is, and what runs a model on it.
struct DeviceView: View {
    /// nil: of no model
    let open: (@MainActor () async throws -> Model)?
    @State private var facts: [Fact] = []
    @State private var error: String?

    var body: some View {
        List {
            ForEach(facts, id: \.self) { fact in
                VStack(alignment: .leading) {
                    Text(fact.label).font(.footnote).foregroundStyle(.secondary)
                    Text(fact.value).textSelection(.enabled)
                }
                .accessibilityElement(children: .combine)
            }
            if let error { Text(error).foregroundStyle(.red) }
        }
        .navigationTitle("Device")
        .task {
            do {
                facts = try deviceFacts(try await open?())
            } catch {
                self.error = error.localizedDescription
            }
        }
    }
}
