import Foundation
import Mote

/// What FoundationModels keeps of a conversation, without its types.
enum Entry: Hashable, Sendable {
    case instructions(String)
    case prompt(String)
    case response(String)
    case reasoning(String)
    case toolCalls([ToolCall])
    case toolOutput(id: String, name: String, text: String)
}

/// What one reply is asked for.
struct Request: Sendable {
    enum ToolChoice: String, Sendable {
        case auto
        case none
        case required
    }

    var entries: [Entry]
    var tools: [Tool] = []
    var toolChoice = ToolChoice.auto
    /// What the reply follows.
    var schema: JSONValue?
    var options: Options = [:]
    /// nil: as the model does
    var thinks: Bool?
}

/// Replies to transcripts. Each request brings the whole of its conversation; the session has most of it, and reads what is new.
final class Conversation: Sendable {
    private let chat: Chat
    /// Tokens of reasoning after which a reply begins anew without any; nil: no such limit.
    private let thinkingBudget: Int?

    init(_ chat: Chat, thinkingBudget: Int?) {
        self.chat = chat
        self.thinkingBudget = thinkingBudget
    }

    func respond(to request: Request, _ take: (ChatEvent) async throws -> Void) async throws {
        try set(request, thinks: request.thinks)
        let options = request.options.with("json_schema", request.schema)
        var left = thinkingBudget ?? .max
        for try await event in chat.reply(options: options) {
            if case .reasoning = event {
                left -= 1
                if left == -1 { chat.session.cancel() }
            }
            if left >= 0 { try await take(event) }
        }
        if left >= 0 { return }
        try set(request, thinks: false)
        for try await event in chat.reply(options: options) { try await take(event) }
    }

    /// Reads what the next request will begin with.
    func prewarm(_ request: Request) async throws {
        try set(request, thinks: request.thinks)
        try await chat.session.setTokens(chat.prompt())
    }

    private func set(_ request: Request, thinks: Bool?) throws {
        try chat.set(.messages, JSONValue.list(messages(of: request.entries)).json)
        try chat.set(.tools, request.tools.isEmpty ? nil : "[" + request.tools.map(\.json).joined(separator: ",") + "]")
        try chat.set(.toolChoice, request.tools.isEmpty ? nil : request.toolChoice.rawValue)
        // A model that thinks first has no room for that in a schema.
        let thinks = request.schema == nil ? thinks : false
        try chat.set(.variables, thinks.map { (["enable_thinking": .bool($0)] as JSONValue).json })
    }
}

/// Messages of OpenAI's form. What the model wrote in one turn is one message.
func messages(of entries: [Entry]) -> [JSONValue] {
    var messages: [JSONValue] = []
    var written: [JSONValue.Member] = []
    func endTurn() {
        if written.isEmpty { return }
        let content = written.contains { $0.name == "content" } ? [] : [JSONValue.Member("content", "")]
        messages.append(.object([JSONValue.Member("role", "assistant")] + content + written))
        written = []
    }
    func write(_ name: String, _ value: JSONValue) {
        // A turn that has this already is another one.
        if written.contains(where: { $0.name == name }) { endTurn() }
        written.append(JSONValue.Member(name, value))
    }
    for entry in entries {
        switch entry {
        case .response(let text): write("content", .text(text))
        case .reasoning(let text): write("reasoning_content", .text(text))
        case .toolCalls(let calls): write("tool_calls", .list(calls.map(call)))
        case .instructions(let text):
            endTurn()
            messages.append(["role": "system", "content": .text(text)])
        case .prompt(let text):
            endTurn()
            messages.append(["role": "user", "content": .text(text)])
        case .toolOutput(let id, let name, let text):
            endTurn()
            messages.append(["role": "tool", "tool_call_id": .text(id), "name": .text(name), "content": .text(text)])
        }
    }
    endTurn()
    return messages
}

private func call(_ call: ToolCall) -> JSONValue {
    let function: JSONValue = ["name": .text(call.name), "arguments": .raw(call.arguments)]
    return ["type": "function", "id": .text(call.id), "function": function]
}
