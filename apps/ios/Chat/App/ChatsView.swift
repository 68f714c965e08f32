import MoteChat
import SwiftUI

/// The chats, and the way to everything else.
struct ChatsView: View {
    let workspace: Workspace
    let library: ModelLibrary
    @State private var chats: [SavedChat] = []
    @State private var selected: SavedChat.ID?
    @State private var doomed: SavedChat?
    @State private var sheet: Sheet?
    @State private var error: String?

    private enum Sheet: String, Identifiable {
        case models, device
        var id: String { rawValue }
    }

    var body: some View {
        NavigationSplitView {
            List(chats, selection: $selected) { chat in
                Text(title(chat)).swipeActions { Button("Delete", role: .destructive) { doomed = chat } }
                    .contextMenu { Button("Delete", role: .destructive) { doomed = chat } }
            }
            .overlay { if chats.isEmpty { ContentUnavailableView("No chats yet", systemImage: "bubble.left.and.bubble.right") } }
            .navigationTitle("Chats")
            .toolbar { toolbar }
        } detail: {
            if let chat = chats.first(where: { $0.id == selected }) {
                ChatLoader(workspace: workspace, saved: chat).id(chat.id)
            } else {
                Text("Begin a chat")
            }
        }
        .task { await library.refresh() }
        .onAppear(perform: refresh)
        .onChange(of: selected) { refresh() }
        .sheet(item: $sheet) { sheet in
            NavigationStack {
                switch sheet {
                case .models: ModelsView(workspace: workspace, library: library)
                case .device: DeviceView(open: nil)
                }
            }
        }
        .confirmationDialog(
            "Delete \(doomed.map(title) ?? "")?", isPresented: Binding { doomed != nil } set: { if !$0 { doomed = nil } }, presenting: doomed
        ) { chat in
            Button("Delete", role: .destructive) { delete(chat) }
        }
        .alert(error ?? "", isPresented: Binding { error != nil } set: { if !$0 { error = nil } }) {}
    }

    @ToolbarContentBuilder private var toolbar: some ToolbarContent {
        ToolbarItem(placement: .primaryAction) {
            if library.models.count > 1 {
                Menu("New chat", systemImage: "square.and.pencil") {
                    ForEach(library.models) { model in Button(model.name) { begin(model) } }
                }
            } else {
                Button("New chat", systemImage: "square.and.pencil") {
                    if let model = library.models.first { begin(model) } else { sheet = .models }
                }
            }
        }
        ToolbarItem { Button("Models", systemImage: "shippingbox") { sheet = .models } }
        ToolbarItem { Button("Device", systemImage: "cpu") { sheet = .device } }
    }

    private func title(_ chat: SavedChat) -> String { chat.title.isEmpty ? String(localized: "New chat") : chat.title }

    private func refresh() { chats = workspace.chats.list() }

    private func begin(_ model: InstalledModel) {
        let chat = workspace.chats.create(model: model.name)
        do {
            try workspace.chats.save(chat, messages: "[]")
            refresh()
            selected = chat.id
        } catch {
            self.error = error.localizedDescription
        }
    }

    private func delete(_ chat: SavedChat) {
        if selected == chat.id { selected = nil }
        workspace.delete(chat)
        refresh()
    }
}
