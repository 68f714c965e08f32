import Foundation

/// A value of JSON, as it is written in source: `["max_new_tokens": 64, "stop_strings": ["###"]]`. Members keep their order, which is
/// the order in which a model writes what a schema describes.
public enum JSONValue: Hashable, Sendable {
    public struct Member: Hashable, Sendable {
        public let name: String
        public let value: JSONValue

        public init(_ name: String, _ value: JSONValue) {
            self.name = name
            self.value = value
        }
    }

    case null
    case bool(Bool)
    case integer(Int64)
    case number(Double)
    case text(String)
    case list([JSONValue])
    case object([Member])
    /// A text that is JSON already.
    case raw(String)

    /// As JSON. What is no number is a text, "inf", "-inf" or "nan".
    public var json: String {
        switch self {
        case .null: return "null"
        case .bool(let value): return value ? "true" : "false"
        case .integer(let value): return "\(value)"
        case .number(let value): return value.isFinite ? "\(value)" : "\"\(value)\""
        case .text(let value): return Self.quoted(value)
        case .list(let values): return "[" + values.map(\.json).joined(separator: ",") + "]"
        case .object(let members):
            return "{" + members.map { Self.quoted($0.name) + ":" + $0.value.json }.joined(separator: ",") + "}"
        case .raw(let json): return json
        }
    }

    /// The value of a member of an object; nil: there is none.
    public subscript(name: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members.last { $0.name == name }?.value
    }

    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for character in text.unicodeScalars {
            switch character {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\u{0}"..."\u{1F}": quoted += "\\u" + String(format: "%04x", character.value)
            default: quoted.unicodeScalars.append(character)
            }
        }
        return quoted + "\""
    }
}

extension JSONValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByStringInterpolation, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(nilLiteral: ()) { self = .null }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(integerLiteral value: Int64) { self = .integer(value) }
    public init(floatLiteral value: Double) { self = .number(value) }
    public init(stringLiteral value: String) { self = .text(value) }
    public init(arrayLiteral elements: JSONValue...) { self = .list(elements) }
    public init(dictionaryLiteral elements: (String, JSONValue)...) { self = .object(elements.map { Member($0.0, $0.1) }) }
}
