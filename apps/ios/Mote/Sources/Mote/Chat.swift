import CMote
import Foundation

/// What a reply adds while it is written.
public enum ChatEvent: Hashable, Sendable {
    case content(String)
    case reasoning(String)
    /// A call of a tool, whole. Its result is told by ``Chat/answer(_:with:)``, and ``Chat/reply(options:)`` goes on.
    case toolCall(ToolCall)
    /// The last event.
    case done(ChatStatistics)
}

/// A reply, read to its end.
public struct Reply: Hashable, Sendable {
    public internal(set) var content = ""
    public internal(set) var reasoning = ""
    public internal(set) var toolCalls: [ToolCall] = []
    public internal(set) var statistics: ChatStatistics?
}

/// A conversation: messages of OpenAI's form, tools, and the session that reads them. One reply at a time. A reply begins when its
/// stream is first asked; what was written of it, also of one that is cancelled or fails, is the conversation's.
public final class Chat: Sendable {
    let handle: Handle
    public let session: Session
    private let ownsSession: Bool

    init(_ model: Model, _ session: Session, ownsSession: Bool) throws {
        handle = try model.handle.opened("chat", close: mote_chat_close) { mote_chat_open($0, $1, $2) }
        self.session = session
        self.ownsSession = ownsSession
    }

    /// Closes its session too if the chat opened it.
    public func close() {
        if ownsSession { session.close() }
        handle.close()
    }

    public var isClosed: Bool { handle.isClosed }

    // MARK: replies

    /// Sends a message of the user. If no reply begins, the message is taken back.
    /// options: those of a generation
    public func stream(_ text: String, options: Options = [:]) -> AsyncThrowingStream<ChatEvent, any Error> {
        let message = Self.message("user", text).json
        return turn(options) { chat, session, options, out, error in
            message.withCBytes { mote_chat_send(chat, session, $0, $1, options, out, error) }
        }
    }

    /// A reply to the messages as they are.
    public func reply(options: Options = [:]) -> AsyncThrowingStream<ChatEvent, any Error> {
        turn(options, mote_chat_reply)
    }

    /// Another reply in the place of the last one.
    public func regenerate(options: Options = [:]) -> AsyncThrowingStream<ChatEvent, any Error> {
        turn(options, mote_chat_regenerate)
    }

    /// Goes on with a reply that was cut off.
    public func continueReply(options: Options = [:]) -> AsyncThrowingStream<ChatEvent, any Error> {
        turn(options, mote_chat_continue)
    }

    /// Sends a message of the user and waits for the whole reply.
    public func respond(to text: String, options: Options = [:]) async throws -> Reply {
        try await stream(text, options: options).wholeReply()
    }

    /// The same as a value, whose JSON Schema the reply follows.
    /// schema: nil: that of the type, by ``JSONSchema/of(_:)``
    /// Errors: DecodingError if the reply is cut off, by max_new_tokens or the context
    public func respond<T: Decodable>(
        to text: String, generating type: T.Type, schema: JSONValue? = nil, options: Options = [:]
    ) async throws -> T {
        let schema = try schema ?? JSONSchema.of(type)
        let reply = try await respond(to: text, options: options.with("json_schema", schema))
        return try JSONDecoder().decode(type, from: Data(reply.content.utf8))
    }

    // MARK: messages

    /// A JSON list of messages of OpenAI's form.
    public var messages: String {
        get throws { try freedText { out in try call { mote_chat_messages($0, out, nil, $1) } } }
    }

    public var numMessages: Int {
        get throws {
            var count = 0
            _ = try freedText { out in try call { mote_chat_messages($0, out, &count, $1) } }
            return count
        }
    }

    /// Adds a message: `["role": "user", "content": "Hello"]`
    public func append(_ message: JSONValue) throws {
        try message.json.withCBytes { text, bytes in try call { mote_chat_append($0, text, bytes, $1) } }
    }

    /// Adds the result of a call.
    public func answer(_ call: ToolCall, with result: String) throws {
        try append(["role": "tool", "tool_call_id": .text(call.id), "name": .text(call.name), "content": .text(result)])
    }

    /// Replaces a message and drops those that followed.
    public func edit(_ index: Int, _ message: JSONValue) throws {
        try message.json.withCBytes { text, bytes in
            try call { mote_chat_edit($0, index, text, bytes, $1) }
        }
    }

    /// Keeps the first messages.
    public func truncate(to count: Int) throws { try call { mote_chat_truncate($0, count, $1) } }

    public enum Field: Int32, Sendable {
        /// A JSON list of objects.
        case messages = 0
        case tools = 1
        case documents = 2
        /// A JSON object: further variables of the template, `{"enable_thinking": false}`.
        case variables = 3
        /// The source of another template than the model's.
        case template = 4
        /// The last message's field that the reply goes on with.
        case continueFinalMessage = 5
        /// auto, none, required, or `{"type": "function", "function": {"name": ..}}`
        case toolChoice = 6
        /// `{"type": "text" | "json_object"}` or `{"type": "json_schema", "json_schema": {"schema": ..}}`
        case responseFormat = 7
    }

    /// nil: not set any more. What is wrong with a field may be told by the reply.
    public func set(_ field: Field, _ text: String?) throws {
        let field: mote_chat_field = value(field.rawValue)
        guard let text else { return try call { mote_chat_set($0, field, nil, 0, $1) } }
        try text.withCBytes { text, bytes in try call { mote_chat_set($0, field, text, bytes, $1) } }
    }

    /// The ids of the next reply's prompt.
    public func prompt() throws -> [Int32] {
        try list { ids, room, count in try call { mote_chat_prompt($0, ids, room, count, $1) } }
    }

    /// Waits until a reply that was left has ended, which takes an instruction of the model.
    private func call(_ body: (OpaquePointer, UnsafeMutablePointer<mote_error>) -> mote_error_code) throws {
        session.gate.wait()
        try handle.call(body)
    }

    private static func message(_ role: String, _ content: String) -> JSONValue {
        ["role": .text(role), "content": .text(content)]
    }

    private typealias Begin = @Sendable (
        OpaquePointer?, OpaquePointer?, OpaquePointer?, UnsafeMutablePointer<OpaquePointer?>?, UnsafeMutablePointer<mote_error>?
    ) -> mote_error_code

    private func turn(_ options: Options, _ begin: @escaping Begin) -> AsyncThrowingStream<ChatEvent, any Error> {
        steps(session.gate) { [self] (feed: Feed<ChatEvent>) in
            let turn = try begun(feed, options, begin)
            feed.onCancel { turn.cancel() }
            defer {
                // Where one of them is closed there is no conversation to keep it.
                if let turn = try? turn.pointer() { try? handle.call { mote_chat_take_reply($0, turn, $1) } }
            }
            try Self.run(turn, feed)
        }
    }

    /// A stream that is cancelled while its turn begins ends what compiles tool_choice or response_format.
    private func begun(_ feed: Feed<ChatEvent>, _ options: Options, _ begin: Begin) throws -> Handle {
        let isCancelled = Locked(false)
        feed.onCancel { isCancelled.withLock { $0 = true } }
        let user = Unmanaged.passUnretained(isCancelled).toOpaque()
        try handle.call {
            mote_chat_set_is_cancelled(
                $0, { Unmanaged<Locked<Bool>>.fromOpaque($0!).takeUnretainedValue().withLock { $0 } ? 1 : 0 }, user, $1)
        }
        defer { try? handle.call { mote_chat_set_is_cancelled($0, nil, nil, $1) } }
        return try withExtendedLifetime(isCancelled) {
            try options.withHandle(.generation) { options in
                let session = try session.handle.pointer()
                return try handle.opened("reply", close: mote_chat_turn_close, cancel: mote_chat_turn_cancel) {
                    begin($0, session, options, $1, $2)
                }
            }
        }
    }

    private static func run(_ turn: Handle, _ feed: Feed<ChatEvent>) throws {
        var event = mote_chat_event()
        event.struct_size = UInt32(MemoryLayout<mote_chat_event>.size)
        var call = (name: "", arguments: "")
        while true {
            try turn.call { mote_chat_turn_next($0, &event, $1) }
            let written = copiedText(event.text, event.text_bytes)
            switch Kind(rawValue: event.kind.rawValue) {
            case .content: feed.put(.content(written))
            case .reasoning: feed.put(.reasoning(written))
            case .callBegin: call = (written, "")
            case .callArguments: call.arguments += written
            case .callEnd:
                let id = event.call_id.map { String(cString: $0) } ?? ""
                feed.put(.toolCall(ToolCall(id: id, name: call.name, arguments: call.arguments)))
            case .done:
                feed.put(.done(try statistics(of: turn)))
                return
            case nil: break
            }
        }
    }

    private enum Kind: Int32 {
        case content = 1
        case reasoning = 2
        case callBegin = 3
        case callArguments = 4
        case callEnd = 5
        case done = 7
    }

    private static func statistics(of turn: Handle) throws -> ChatStatistics {
        var chat = mote_chat_statistics()
        chat.struct_size = UInt32(MemoryLayout<mote_chat_statistics>.size)
        var generation = mote_statistics()
        generation.struct_size = UInt32(MemoryLayout<mote_statistics>.size)
        try turn.call { mote_chat_turn_statistics($0, &chat, &generation, $1) }
        return ChatStatistics(chat, generation)
    }
}

extension AsyncThrowingStream where Element == ChatEvent, Failure == any Error {
    /// What the events of a reply are together.
    public func wholeReply() async throws -> Reply {
        var reply = Reply()
        for try await event in self {
            switch event {
            case .content(let text): reply.content += text
            case .reasoning(let text): reply.reasoning += text
            case .toolCall(let call): reply.toolCalls.append(call)
            case .done(let statistics): reply.statistics = statistics
            }
        }
        return reply
    }
}
