import MoteChat
import SwiftUI

/// A message: what the user wrote as it is, what the model wrote as Markdown, its reasoning folded.
struct MessageView: View {
    let message: ShownMessage
    @State private var showsReasoning = false

    private var isUser: Bool { message.role == .user }

    var body: some View {
        VStack(alignment: .leading, spacing: 8) {
            if !message.reasoning.isEmpty {
                DisclosureGroup("Reasoning", isExpanded: $showsReasoning) {
                    Text(message.reasoning).font(.callout).foregroundStyle(.secondary).frame(maxWidth: .infinity, alignment: .leading)
                }
            }
            if isUser {
                Text(message.text)
            } else {
                MarkdownView(blocks: blocks(ofMarkdown: message.text))
            }
        }
        .textSelection(.enabled)
        .padding(12)
        .background(isUser ? AnyShapeStyle(Color.accentColor.opacity(0.15)) : AnyShapeStyle(.quaternary), in: .rect(cornerRadius: 14))
        .frame(maxWidth: .infinity, alignment: isUser ? .trailing : .leading)
        .accessibilityElement(children: .contain)
        .accessibilityLabel(isUser ? "You" : "Reply")
    }
}

/// Blocks of a text, one below the other.
struct MarkdownView: View {
    let blocks: [Block]

    var body: some View {
        VStack(alignment: .leading, spacing: 8) {
            ForEach(Array(blocks.enumerated()), id: \.offset) { _, block in view(block) }
        }
    }

    @ViewBuilder private func view(_ block: Block) -> some View {
        switch block {
        case .paragraph(let runs): Text(styled(runs))
        case .heading(let level, let runs):
            Text(styled(runs)).font(level == 1 ? .title2 : level == 2 ? .title3 : .headline).accessibilityAddTraits(.isHeader)
        case .item(let depth, let mark, let runs):
            HStack(alignment: .firstTextBaseline) {
                Text(mark)
                Text(styled(runs))
            }
            .padding(.leading, 16 * CGFloat(min(depth, 6)))
            .accessibilityElement(children: .combine)
        case .quote(let runs):
            Text(styled(runs)).foregroundStyle(.secondary).padding(.leading, 12)
                .overlay(alignment: .leading) { Rectangle().fill(.tertiary).frame(width: 3) }
        case .code(let language, let text):
            // Code is written from left to right in every language.
            ScrollView(.horizontal) { Text(text).font(.system(.callout, design: .monospaced)).padding(8) }
                .background(.quinary, in: .rect(cornerRadius: 8))
                .environment(\.layoutDirection, .leftToRight)
                .accessibilityLabel(language.isEmpty ? "Code: \(text)" : "Code in \(language): \(text)")
        case .rule: Divider()
        }
    }

    private func styled(_ runs: [Run]) -> AttributedString {
        runs.reduce(into: AttributedString()) { all, run in
            var part = AttributedString(run.text)
            var intent: InlinePresentationIntent = []
            if run.style.contains(.bold) { intent.insert(.stronglyEmphasized) }
            if run.style.contains(.italic) { intent.insert(.emphasized) }
            if run.style.contains(.struck) { intent.insert(.strikethrough) }
            if run.style.contains(.code) { intent.insert(.code) }
            if !intent.isEmpty { part.inlinePresentationIntent = intent }
            part.link = run.link
            all += part
        }
    }
}
