import MoteChat
import SwiftUI
import UniformTypeIdentifiers

/// Opens a chat, which may take a while.
struct ChatLoader: View {
    let workspace: Workspace
    let saved: SavedChat
    @State private var opened: Result<Conversation, any Error>?

    var body: some View {
        switch opened {
        case .success(let conversation): ChatView(conversation: conversation)
        case .failure(let error): ContentUnavailableView(error.localizedDescription, systemImage: "exclamationmark.triangle")
        case nil:
            ProgressView("Opening").task {
                do {
                    opened = .success(try await workspace.conversation(saved))
                } catch {
                    opened = .failure(error)
                }
            }
        }
    }
}

/// One chat. What it shows lives in `Conversation`, so that turning the device changes nothing.
struct ChatView: View {
    let conversation: Conversation
    @Environment(\.scenePhase) private var phase
    @State private var text = ""
    @State private var picks = false
    @State private var showsSettings = false
    @State private var edited: Edited?

    private var state: ConversationState { conversation.state }

    var body: some View {
        ScrollView {
            LazyVStack(spacing: 12) {
                ForEach(Array(state.messages.enumerated()), id: \.offset) { index, message in
                    MessageView(message: message).contextMenu {
                        Button("Copy", systemImage: "doc.on.doc") { UIPasteboard.general.string = message.text }
                        if message.role == .user, !state.isWriting {
                            Button("Edit", systemImage: "pencil") { edited = Edited(index: index, text: message.text) }
                        }
                    }
                }
                if let draft = state.draft { MessageView(message: draft) }
            }
            .padding()
        }
        .defaultScrollAnchor(.bottom)
        .scrollDismissesKeyboard(.interactively)
        .safeAreaInset(edge: .bottom) { composer }
        .navigationTitle(state.title.isEmpty ? String(localized: "New chat") : state.title)
        .navigationBarTitleDisplayMode(.inline)
        .toolbar { toolbar }
        .fileImporter(isPresented: $picks, allowedContentTypes: [.text]) { result in
            if case .success(let file) = result { accessing(file) { conversation.attach(contentsOf: file) } }
        }
        .sheet(isPresented: $showsSettings) { NavigationStack { SettingsView(conversation: conversation) } }
        .sheet(item: $edited) { edited in NavigationStack { EditView(conversation: conversation, edited: edited) } }
        .onChange(of: phase) { if phase == .background { persist() } }
        .onDisappear(perform: persist)
    }

    @ToolbarContentBuilder private var toolbar: some ToolbarContent {
        ToolbarItem {
            Button("Regenerate", systemImage: "arrow.clockwise", action: conversation.regenerate).disabled(!state.canRegenerate)
        }
        ToolbarItem { Button("Settings", systemImage: "slider.horizontal.3") { showsSettings = true }.disabled(state.isWriting) }
        ToolbarItem { ShareLink(item: conversation.export()).disabled(state.messages.isEmpty) }
    }

    private var composer: some View {
        VStack(alignment: .leading, spacing: 6) {
            if let error = state.error {
                Text(error).font(.footnote).foregroundStyle(.red)
            } else if let statistics = state.statistics?.generation, !state.isWriting {
                let speed = Double(statistics.generatedTokens - 1) / max(statistics.decodeSeconds, .ulpOfOne)
                Text("\(speed, specifier: "%.1f") tokens/s, first token after \(statistics.timeToFirstTokenSeconds, specifier: "%.1f") s")
                    .font(.footnote).foregroundStyle(.secondary)
            }
            ForEach(Array(state.attachments.enumerated()), id: \.offset) { index, attachment in
                Button(attachment.name, systemImage: "xmark.circle") { conversation.detach(index) }
                    .font(.footnote).accessibilityLabel("Remove \(attachment.name)")
            }
            HStack(alignment: .bottom) {
                Button("Attach a text", systemImage: "paperclip") { picks = true }.labelStyle(.iconOnly)
                TextField("Message", text: $text, axis: .vertical).lineLimit(1...6).textFieldStyle(.roundedBorder)
                if state.isWriting {
                    Button("Stop", systemImage: "stop.circle.fill", action: conversation.stop).labelStyle(.iconOnly)
                } else {
                    Button("Send", systemImage: "arrow.up.circle.fill", action: send).labelStyle(.iconOnly)
                        .keyboardShortcut(.return, modifiers: .command)
                }
            }
            .font(.title2)
        }
        .padding()
        .background(.bar)
    }

    private func send() {
        conversation.send(text)
        if state.isWriting { text = "" }
    }

    /// A session that cannot be written is computed again when the app starts.
    private func persist() {
        Task {
            // A reply goes on for as long as the system lets it.
            let background = UIApplication.shared.beginBackgroundTask { conversation.stop() }
            try? await conversation.persist()
            UIApplication.shared.endBackgroundTask(background)
        }
    }
}

struct Edited: Identifiable {
    let index: Int
    let text: String
    var id: Int { index }
}

/// A message of the user, changed and answered anew.
private struct EditView: View {
    let conversation: Conversation
    let edited: Edited
    @Environment(\.dismiss) private var dismiss
    @State private var text = ""

    var body: some View {
        TextEditor(text: $text)
            .padding()
            .navigationTitle("Edit the message")
            .onAppear { text = edited.text }
            .toolbar {
                ToolbarItem(placement: .cancellationAction) { Button("Cancel") { dismiss() } }
                ToolbarItem(placement: .confirmationAction) {
                    Button("Send") {
                        conversation.edit(edited.index, text)
                        dismiss()
                    }
                }
            }
    }
}

/// Reads a file that was picked outside of the app.
func accessing(_ file: URL, _ read: () -> Void) {
    let isScoped = file.startAccessingSecurityScopedResource()
    defer { if isScoped { file.stopAccessingSecurityScopedResource() } }
    read()
}
