// What Sources/MoteFoundationModels uses of Apple's FoundationModels (OS 27), in the same shape, for systems without it. Written from
// the public documentation: developer.apple.com/documentation/foundationmodels.
import Foundation

public protocol LanguageModel: Sendable {
    associatedtype Executor: LanguageModelExecutor where Executor.Model == Self
    var capabilities: LanguageModelCapabilities { get }
    var executorConfiguration: Executor.Configuration { get }
}

public protocol LanguageModelExecutor: Sendable {
    associatedtype Configuration: Hashable & Sendable
    associatedtype Model: LanguageModel
    init(configuration: Configuration) throws
    func prewarm(model: Model, transcript: Transcript)
    func respond(
        to request: LanguageModelExecutorGenerationRequest, model: Model,
        streamingInto channel: LanguageModelExecutorGenerationChannel) async throws
}

public struct LanguageModelCapabilities: Sendable {
    public struct Capability: Hashable, Sendable {
        let name: String
        public static let guidedGeneration = Capability(name: "guidedGeneration")
        public static let toolCalling = Capability(name: "toolCalling")
        public static let reasoning = Capability(name: "reasoning")
    }
    public let all: [Capability]
    public init(_ capabilities: [Capability]) { all = capabilities }
}

/// Encodes as JSON Schema.
public struct GenerationSchema: Sendable, Encodable {
    public indirect enum Value: Sendable, Encodable {
        case text(String), flag(Bool), list([Value]), object([String: Value])

        public func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            switch self {
            case .text(let text): try container.encode(text)
            case .flag(let flag): try container.encode(flag)
            case .list(let list): try container.encode(list)
            case .object(let object): try container.encode(object)
            }
        }
    }
    let root: Value
    public init(_ root: Value) { self.root = root }
    public func encode(to encoder: any Encoder) throws { try root.encode(to: encoder) }
}

public struct GeneratedContent: Sendable {
    public let jsonString: String
    public init(json: String) { jsonString = json }
}

public struct GenerationOptions: Sendable {
    public struct SamplingMode: Sendable {
        public enum Kind: Sendable {
            case greedy
            case randomTopK(Int, seed: UInt64?)
            case randomProbabilityThreshold(Double, seed: UInt64?)
        }
        public let kind: Kind
        public init(kind: Kind) { self.kind = kind }
        public static let greedy = SamplingMode(kind: .greedy)
    }
    public struct ToolCallingMode: Sendable {
        public enum Kind: Sendable { case allowed, disallowed, required }
        public let kind: Kind
        public static let allowed = ToolCallingMode(kind: .allowed)
        public static let disallowed = ToolCallingMode(kind: .disallowed)
        public static let required = ToolCallingMode(kind: .required)
    }
    public var samplingMode: SamplingMode?
    public var temperature: Double?
    public var maximumResponseTokens: Int?
    public var toolCallingMode: ToolCallingMode?
    public init(
        samplingMode: SamplingMode? = nil, temperature: Double? = nil, maximumResponseTokens: Int? = nil,
        toolCallingMode: ToolCallingMode? = nil
    ) {
        self.samplingMode = samplingMode
        self.temperature = temperature
        self.maximumResponseTokens = maximumResponseTokens
        self.toolCallingMode = toolCallingMode
    }
}

public struct ContextOptions: Sendable {
    public enum ReasoningLevel: Sendable { case light, moderate, deep }
    public var reasoningLevel: ReasoningLevel?
    public init(reasoningLevel: ReasoningLevel? = nil) { self.reasoningLevel = reasoningLevel }
}

public struct Transcript: Sendable, RandomAccessCollection {
    public struct TextSegment: Sendable {
        public let content: String
        public init(content: String) { self.content = content }
    }
    public struct StructuredSegment: Sendable {
        public let content: GeneratedContent
        public init(content: GeneratedContent) { self.content = content }
    }
    public enum Segment: Sendable {
        case text(TextSegment)
        case structure(StructuredSegment)
        case attachment(String)
    }
    public struct ToolDefinition: Sendable {
        public let name: String
        public let description: String
        public let parameters: GenerationSchema
        public init(name: String, description: String, parameters: GenerationSchema) {
            self.name = name
            self.description = description
            self.parameters = parameters
        }
    }
    public struct Instructions: Sendable {
        public let segments: [Segment]
        public let toolDefinitions: [ToolDefinition]
    }
    public struct Prompt: Sendable {
        public let segments: [Segment]
        public init(segments: [Segment]) { self.segments = segments }
    }
    public struct Response: Sendable { public let segments: [Segment] }
    public struct Reasoning: Sendable { public let segments: [Segment] }
    public struct ToolCall: Sendable {
        public let id: String
        public let toolName: String
        public let arguments: GeneratedContent
    }
    public struct ToolOutput: Sendable {
        public let id: String
        public let toolName: String
        public let segments: [Segment]
    }
    public enum Entry: Sendable {
        case instructions(Instructions)
        case prompt(Prompt)
        case response(Response)
        case reasoning(Reasoning)
        case toolCalls([ToolCall])
        case toolOutput(ToolOutput)
    }

    var entries: [Entry]
    public init(entries: [Entry] = []) { self.entries = entries }
    public var startIndex: Int { 0 }
    public var endIndex: Int { entries.count }
    public subscript(index: Int) -> Entry { entries[index] }
}

public struct LanguageModelExecutorGenerationRequest: Sendable {
    public var id = UUID()
    public var transcript: Transcript
    public var enabledToolDefinitions: [Transcript.ToolDefinition]
    public var schema: GenerationSchema?
    public var generationOptions: GenerationOptions
    public var contextOptions: ContextOptions
}

public struct LanguageModelExecutorGenerationChannel: Sendable {
    public struct Response: Sendable {
        public enum Action: Sendable {
            case appendText(String, tokenCount: Int)
            case updateUsage(input: Usage.Input, output: Usage.Output)
        }
    }
    public struct Reasoning: Sendable {
        public enum Action: Sendable { case appendText(String, tokenCount: Int) }
    }
    public struct ToolCalls: Sendable {
        public enum Action: Sendable { case toolCall(id: String, name: String, action: ToolCall.Action) }
        public struct ToolCall: Sendable {
            public enum Action: Sendable { case appendArguments(String, tokenCount: Int) }
        }
    }
    public struct Usage: Sendable {
        public struct Input: Sendable {
            public let totalTokenCount: Int
            public let cachedTokenCount: Int
            public init(totalTokenCount: Int, cachedTokenCount: Int) {
                self.totalTokenCount = totalTokenCount
                self.cachedTokenCount = cachedTokenCount
            }
        }
        public struct Output: Sendable {
            public let totalTokenCount: Int
            public init(totalTokenCount: Int, reasoningTokenCount: Int) { self.totalTokenCount = totalTokenCount }
        }
    }
    public enum Event: Sendable {
        case response(entryID: String?, action: Response.Action)
        case reasoning(entryID: String?, action: Reasoning.Action)
        case toolCalls(entryID: String?, action: ToolCalls.Action)
    }

    let take: @Sendable (Event) async -> Void
    public func send(_ event: Event) async { await take(event) }
}

public enum LanguageModelError: Error {
    public struct ContextSizeExceeded: Sendable {
        public let debugDescription: String
        public init(contextSize: Int, tokenCount: Int, debugDescription: String) { self.debugDescription = debugDescription }
    }
    public struct UnsupportedTranscriptContent: Sendable {
        public let debugDescription: String
        public init(unsupportedContent: [Transcript.Entry], debugDescription: String) { self.debugDescription = debugDescription }
    }
    case contextSizeExceeded(ContextSizeExceeded)
    case unsupportedTranscriptContent(UnsupportedTranscriptContent)
}
