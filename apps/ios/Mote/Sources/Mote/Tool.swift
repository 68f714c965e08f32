import Foundation

/// What a model may call.
public struct Tool: Hashable, Sendable {
    /// OpenAI's form: `{"type": "function", "function": {"name": .., "parameters": ..}}`
    public let json: String

    public init(json: String) {
        self.json = json
    }

    /// parameters: a JSON Schema of an object
    public init(name: String, description: String, parameters: JSONValue) {
        let function: JSONValue = ["name": .text(name), "description": .text(description), "parameters": parameters]
        json = (["type": "function", "function": function] as JSONValue).json
    }

    /// A tool whose arguments are a type with a schema. Errors: those of ``JSONSchema/of(_:)``
    public init<Arguments: Decodable>(name: String, description: String, arguments: Arguments.Type) throws {
        self.init(name: name, description: description, parameters: try JSONSchema.of(arguments))
    }
}

/// A call that a model has written. Its result is told by ``Chat/answer(_:with:)``.
public struct ToolCall: Hashable, Sendable {
    public let id: String
    public let name: String
    /// A JSON object.
    public let arguments: String

    public init(id: String, name: String, arguments: String) {
        self.id = id
        self.name = name
        self.arguments = arguments
    }

    /// Errors: DecodingError
    public func decoded<Arguments: Decodable>(as type: Arguments.Type = Arguments.self) throws -> Arguments {
        try JSONDecoder().decode(type, from: Data(arguments.utf8))
    }
}
