/// What Apple's session does with an executor: it keeps the transcript, runs tools and asks again.
public actor LanguageModelSession<Model: LanguageModel> {
    public struct Tool: Sendable {
        let definition: Transcript.ToolDefinition
        let call: @Sendable (String) async throws -> String
        public init(_ definition: Transcript.ToolDefinition, call: @escaping @Sendable (String) async throws -> String) {
            self.definition = definition
            self.call = call
        }
    }

    /// What one request took.
    public struct Usage: Sendable {
        public let prompt: Int
        public let cached: Int
        public let generated: Int
    }

    private let model: Model
    private let executor: Model.Executor
    private let tools: [Tool]
    public private(set) var transcript: Transcript
    public private(set) var usages: [Usage] = []
    private var calls: [Transcript.ToolCall] = []
    private var text = ""
    private var thought = ""

    public init(model: Model, tools: [Tool] = [], instructions: String) throws {
        self.model = model
        self.tools = tools
        executor = try Model.Executor(configuration: model.executorConfiguration)
        let segments: [Transcript.Segment] = [.text(.init(content: instructions))]
        transcript = Transcript(entries: [.instructions(.init(segments: segments, toolDefinitions: tools.map(\.definition)))])
    }

    public func prewarm() { executor.prewarm(model: model, transcript: transcript) }

    public func append(_ entry: Transcript.Entry) { transcript.entries.append(entry) }

    public func respond(
        to prompt: String, schema: GenerationSchema? = nil, options: GenerationOptions = .init(), context: ContextOptions = .init()
    ) async throws -> String {
        transcript.entries.append(.prompt(.init(segments: [.text(.init(content: prompt))])))
        var options = options
        while true {
            try await ask(schema, options, context)
            if calls.isEmpty { return text }
            for call in calls {
                let tool = tools.first { $0.definition.name == call.toolName }!
                let output = try await tool.call(call.arguments.jsonString)
                transcript.entries.append(
                    .toolOutput(.init(id: call.id, toolName: call.toolName, segments: [.text(.init(content: output))])))
            }
            options.toolCallingMode = .disallowed
        }
    }

    private func ask(_ schema: GenerationSchema?, _ options: GenerationOptions, _ context: ContextOptions) async throws {
        (calls, text, thought) = ([], "", "")
        let request = LanguageModelExecutorGenerationRequest(
            transcript: transcript, enabledToolDefinitions: tools.map(\.definition), schema: schema, generationOptions: options,
            contextOptions: context)
        let channel = LanguageModelExecutorGenerationChannel { [self] in await take($0) }
        try await executor.respond(to: request, model: model, streamingInto: channel)
        if !thought.isEmpty { transcript.entries.append(.reasoning(.init(segments: [.text(.init(content: thought))]))) }
        if !text.isEmpty { transcript.entries.append(.response(.init(segments: [.text(.init(content: text))]))) }
        if !calls.isEmpty { transcript.entries.append(.toolCalls(calls)) }
    }

    private func take(_ event: LanguageModelExecutorGenerationChannel.Event) {
        switch event {
        case .response(_, .appendText(let more, _)): text += more
        case .reasoning(_, .appendText(let more, _)): thought += more
        case .response(_, .updateUsage(let input, let output)):
            usages.append(
                Usage(prompt: input.totalTokenCount, cached: input.cachedTokenCount, generated: output.totalTokenCount))
        case .toolCalls(_, .toolCall(let id, let name, .appendArguments(let arguments, _))):
            calls.append(Transcript.ToolCall(id: id, toolName: name, arguments: GeneratedContent(json: arguments)))
        }
    }
}
