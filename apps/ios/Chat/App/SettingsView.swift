import MoteChat
import SwiftUI

/// The system prompt and the options of a chat: a field each, as the library describes them.
struct SettingsView: View {
    let conversation: Conversation
    @Environment(\.dismiss) private var dismiss
    @State private var settings = ChatSettings()

    var body: some View {
        Form {
            Section("System prompt") { TextField("System prompt", text: $settings.instructions, axis: .vertical).lineLimit(2...8) }
            Section("Sampling") { ForEach(Setting.all) { field($0) } }
        }
        .navigationTitle("Settings")
        .onAppear { settings = conversation.settings }
        .toolbar {
            ToolbarItem(placement: .cancellationAction) { Button("Cancel") { dismiss() } }
            ToolbarItem(placement: .confirmationAction) {
                Button("Done") {
                    conversation.change(settings)
                    dismiss()
                }
                .disabled(Setting.all.contains { $0.problem(settings.values[$0.name] ?? "") != nil })
            }
        }
    }

    private func field(_ setting: Setting) -> some View {
        let text = Binding { settings.values[setting.name] ?? "" } set: { settings.values[setting.name] = $0 }
        return VStack(alignment: .leading) {
            TextField(setting.name, text: text, prompt: Text("\(setting.name) \(setting.standard) \(setting.unit)"))
                .keyboardType(setting.type == "number" || setting.type == "integer" ? .numbersAndPunctuation : .default)
                .autocorrectionDisabled().textInputAutocapitalization(.never)
            if let problem = setting.problem(text.wrappedValue) {
                Text(problem).font(.footnote).foregroundStyle(.red)
            } else {
                Text(setting.help).font(.footnote).foregroundStyle(.secondary)
            }
        }
        .accessibilityElement(children: .combine)
    }
}
