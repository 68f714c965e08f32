import MoteChat
import SwiftUI
import UniformTypeIdentifiers

/// The models on this device: picked from its files, or downloaded.
struct ModelsView: View {
    let workspace: Workspace
    let library: ModelLibrary
    @Environment(\.dismiss) private var dismiss
    @State private var reference = ""
    @State private var allowsMetered = false
    @State private var picks = false

    var body: some View {
        List {
            Section {
                ForEach(library.models) { row($0) }
                Button("Pick a file", systemImage: "folder") { picks = true }
            }
            Section("Download") { download }
            if let error = library.error { Text(error).foregroundStyle(.red) }
        }
        .navigationTitle("Models")
        .task { await library.refresh() }
        .toolbar { ToolbarItem(placement: .confirmationAction) { Button("Done") { dismiss() } } }
        .fileImporter(isPresented: $picks, allowedContentTypes: [UTType(filenameExtension: "mote") ?? .data]) { result in
            if case .success(let file) = result { add(file) }
        }
    }

    private func row(_ model: InstalledModel) -> some View {
        NavigationLink {
            ModelView(workspace: workspace, model: model)
        } label: {
            LabeledContent(model.name, value: Int64(model.bytes), format: .byteCount(style: .file))
        }
        .swipeActions { Button("Delete", role: .destructive) { Task { await library.remove(model) } } }
    }

    @ViewBuilder private var download: some View {
        if library.isDownloading {
            let progress = library.progress
            ProgressView(value: progress?.totalBytes.map { Double(progress?.bytes ?? 0) / Double(max($0, 1)) }) {
                Text(progress?.waitsFor ?? progress?.name ?? String(localized: "Asking"))
            } currentValueLabel: {
                Text(progress?.bytes ?? 0, format: .byteCount(style: .file))
            }
            Button("Stop", role: .cancel, action: library.stop)
        } else {
            TextField("Hub id or URL", text: $reference).autocorrectionDisabled().textInputAutocapitalization(.never).keyboardType(.URL)
            Toggle("Over mobile networks too", isOn: $allowsMetered)
            Button("Download", systemImage: "arrow.down.circle") { library.get(reference, allowsMetered: allowsMetered) }
                .disabled(reference.isEmpty)
        }
    }

    private func add(_ file: URL) {
        let isScoped = file.startAccessingSecurityScopedResource()
        Task {
            await library.add(file)
            if isScoped { file.stopAccessingSecurityScopedResource() }
        }
    }
}

/// What can be done with a model.
private struct ModelView: View {
    let workspace: Workspace
    let model: InstalledModel

    var body: some View {
        List {
            NavigationLink("Benchmark") {
                BenchmarkView(runs: BenchmarkRuns { Benchmark(try await workspace.model(model.name)) })
            }
            NavigationLink("Device") { DeviceView { try await workspace.model(model.name) } }
        }
        .navigationTitle(model.name)
    }
}
