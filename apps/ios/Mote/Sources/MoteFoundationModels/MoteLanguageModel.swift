// MOTE_TEST_SHAPES: against protocols of the same shape, in Tests/FoundationModels.
#if canImport(FoundationModels) && (compiler(>=6.4) || MOTE_TEST_SHAPES)
    import Foundation
    import FoundationModels
    import Mote

    /// A model file behind a `LanguageModelSession`:
    ///
    ///     let model = try await MoteLanguageModel(contentsOf: url)
    ///     let session = LanguageModelSession(model: model)
    ///     print(try await session.respond(to: "Hello").content)
    ///
    /// Sessions share the model's weights. Each has caches of its own, so that a turn costs what is new in it.
    @available(iOS 27.0, macOS 27.0, visionOS 27.0, *)
    public struct MoteLanguageModel: LanguageModel {
        public typealias Executor = MoteLanguageModelExecutor

        public let executorConfiguration: Executor.Configuration

        public var capabilities: LanguageModelCapabilities { LanguageModelCapabilities([.guidedGeneration, .toolCalling, .reasoning]) }

        /// sessionOptions: those of a session   thinkingBudget: tokens of reasoning after which a reply begins anew without any
        public init(_ model: Model, sessionOptions: Options = [:], thinkingBudget: Int? = 1024) {
            executorConfiguration = Executor.Configuration(model: model, sessionOptions: sessionOptions, thinkingBudget: thinkingBudget)
        }

        public init(contentsOf url: URL, options: Options = [:], sessionOptions: Options = [:], thinkingBudget: Int? = 1024) async throws {
            self.init(try await Model(contentsOf: url, options: options), sessionOptions: sessionOptions, thinkingBudget: thinkingBudget)
        }
    }

    /// Replies to the requests of one `LanguageModelSession`.
    @available(iOS 27.0, macOS 27.0, visionOS 27.0, *)
    public final class MoteLanguageModelExecutor: LanguageModelExecutor {
        public typealias Model = MoteLanguageModel

        /// Equal for the same opened model with the same settings.
        public struct Configuration: Hashable, Sendable {
            let model: Mote.Model
            let sessionOptions: Options
            let thinkingBudget: Int?

            public static func == (a: Self, b: Self) -> Bool {
                a.model === b.model && a.thinkingBudget == b.thinkingBudget && a.sessionOptions == b.sessionOptions
            }

            public func hash(into hasher: inout Hasher) {
                hasher.combine(ObjectIdentifier(model))
                hasher.combine(thinkingBudget)
            }
        }

        private let conversation: Task<Conversation, any Error>

        public init(configuration: Configuration) throws {
            conversation = Task {
                let chat = try await configuration.model.chat(options: configuration.sessionOptions)
                return Conversation(chat, thinkingBudget: configuration.thinkingBudget)
            }
        }

        public func prewarm(model: Model, transcript: Transcript) {
            Task { [conversation] in
                try await conversation.value.prewarm(Request(entries: try transcript.map(Entry.init)))
            }
        }

        public func respond(
            to request: LanguageModelExecutorGenerationRequest, model: Model,
            streamingInto channel: LanguageModelExecutorGenerationChannel
        ) async throws {
            let ids = (response: UUID().uuidString, reasoning: UUID().uuidString, calls: UUID().uuidString)
            do {
                try await conversation.value.respond(to: try Request(request)) { event in
                    switch event {
                    case .content(let text):
                        await channel.send(.response(entryID: ids.response, action: .appendText(text, tokenCount: 1)))
                    case .reasoning(let text):
                        await channel.send(.reasoning(entryID: ids.reasoning, action: .appendText(text, tokenCount: 1)))
                    case .toolCall(let call):
                        let arguments: LanguageModelExecutorGenerationChannel.ToolCalls.ToolCall.Action =
                            .appendArguments(call.arguments, tokenCount: 1)
                        await channel.send(
                            .toolCalls(entryID: ids.calls, action: .toolCall(id: call.id, name: call.name, action: arguments)))
                    case .done(let statistics):
                        await channel.send(
                            .response(
                                entryID: ids.response,
                                action: .updateUsage(
                                    input: .init(totalTokenCount: statistics.promptTokens, cachedTokenCount: statistics.keptTokens),
                                    output: .init(totalTokenCount: statistics.generation.generatedTokens, reasoningTokenCount: 0))))
                    }
                }
            } catch let error as MoteError where error.code == .contextFull {
                throw LanguageModelError.contextSizeExceeded(
                    .init(contextSize: 0, tokenCount: 0, debugDescription: error.message))
            }
        }
    }

    @available(iOS 27.0, macOS 27.0, visionOS 27.0, *)
    extension Request {
        init(_ request: LanguageModelExecutorGenerationRequest) throws {
            self.init(entries: try request.transcript.map(Entry.init))
            // As they stood at the beginning, so that the prompt keeps its beginning where some are disabled for a turn.
            var definitions: [Transcript.ToolDefinition] = []
            for case .instructions(let instructions) in request.transcript { definitions = instructions.toolDefinitions }
            if definitions.isEmpty { definitions = request.enabledToolDefinitions }
            tools = try definitions.map {
                Tool(name: $0.name, description: $0.description, parameters: try ordered(schema: JSONEncoder().encode($0.parameters)))
            }
            switch request.generationOptions.toolCallingMode?.kind {
            case .required: toolChoice = .required
            case .disallowed: toolChoice = .none
            default: toolChoice = request.enabledToolDefinitions.isEmpty ? .none : .auto
            }
            schema = try request.schema.map { try ordered(schema: JSONEncoder().encode($0)) }
            options = Options(request.generationOptions)
            thinks = request.contextOptions.reasoningLevel == nil ? nil : true
        }
    }

    @available(iOS 27.0, macOS 27.0, visionOS 27.0, *)
    extension Options {
        init(_ options: GenerationOptions) {
            self.init()
            self["temperature"] = options.temperature.map { .number($0) }
            self["max_new_tokens"] = options.maximumResponseTokens.map { .integer(Int64($0)) }
            switch options.samplingMode?.kind {
            case .greedy: self["temperature"] = 0
            case .randomTopK(let count, let seed):
                self["top_k"] = .integer(Int64(count))
                self["seed"] = seed.map { .integer(Int64(truncatingIfNeeded: $0)) }
            case .randomProbabilityThreshold(let threshold, let seed):
                self["top_p"] = .number(threshold)
                self["seed"] = seed.map { .integer(Int64(truncatingIfNeeded: $0)) }
            default: break
            }
        }
    }

    @available(iOS 27.0, macOS 27.0, visionOS 27.0, *)
    extension Entry {
        /// Errors: LanguageModelError for what is no text
        init(_ entry: Transcript.Entry) throws {
            switch entry {
            case .instructions(let instructions): self = .instructions(try Self.text(instructions.segments, entry))
            case .prompt(let prompt): self = .prompt(try Self.text(prompt.segments, entry))
            case .response(let response): self = .response(try Self.text(response.segments, entry))
            case .reasoning(let reasoning): self = .reasoning(try Self.text(reasoning.segments, entry))
            case .toolCalls(let calls):
                self = .toolCalls(calls.map { ToolCall(id: $0.id, name: $0.toolName, arguments: $0.arguments.jsonString) })
            case .toolOutput(let output):
                self = .toolOutput(id: output.id, name: output.toolName, text: try Self.text(output.segments, entry))
            @unknown default: throw Self.unsupported(entry)
            }
        }

        private static func text(_ segments: [Transcript.Segment], _ entry: Transcript.Entry) throws -> String {
            try segments.map { segment in
                switch segment {
                case .text(let text): return text.content
                case .structure(let structure): return structure.content.jsonString
                default: throw unsupported(entry)
                }
            }.joined()
        }

        private static func unsupported(_ entry: Transcript.Entry) -> LanguageModelError {
            .unsupportedTranscriptContent(
                .init(unsupportedContent: [entry], debugDescription: "Mote's models read text: the transcript has something else"))
        }
    }
#endif
