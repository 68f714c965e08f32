import Foundation

/// A type that says itself what its JSON looks like, where ``JSONSchema/of(_:)`` cannot see it.
public protocol HasJSONSchema: Decodable {
    static var jsonSchema: JSONValue { get }
}

/// The JSON Schema of a type, for text that a model writes.
public enum JSONSchema {
    /// What `JSONDecoder` reads as the type: asked of the type's `init(from:)`, which gets a decoder that writes down what it is asked
    /// for. Properties that are optional may be left out. Enums with raw values must be `CaseIterable`.
    /// Errors: ``MoteError`` with the code `invalidArgument` that names a type whose `init(from:)` does not show what it reads: an enum
    /// with associated values, one that checks what it reads. It can adopt ``HasJSONSchema``.
    public static func of<T: Decodable>(_ type: T.Type) throws -> JSONValue {
        let schemas = Schemas()
        let root = try schemas.of(type).schema
        guard case .object(let members) = root, !schemas.definitions.isEmpty else { return root }
        return .object(members + [JSONValue.Member("$defs", .object(schemas.definitions))])
    }
}

/// Types that hold others, whose `init(from:)` shows nothing of an empty one.
private protocol Container {
    static func schema(_ schemas: Schemas) throws -> JSONValue
    static var empty: Any { get }
}

extension Array: Container where Element: Decodable {
    fileprivate static func schema(_ schemas: Schemas) throws -> JSONValue {
        ["type": "array", "items": try schemas.of(Element.self).schema]
    }
    fileprivate static var empty: Any { [Element]() }
}

extension Set: Container where Element: Decodable {
    fileprivate static func schema(_ schemas: Schemas) throws -> JSONValue {
        ["type": "array", "items": try schemas.of(Element.self).schema]
    }
    fileprivate static var empty: Any { Set<Element>() }
}

extension Dictionary: Container where Key == String, Value: Decodable {
    fileprivate static func schema(_ schemas: Schemas) throws -> JSONValue {
        ["type": "object", "additionalProperties": try schemas.of(Value.self).schema]
    }
    fileprivate static var empty: Any { [String: Value]() }
}

extension Optional: Container where Wrapped: Decodable {
    fileprivate static func schema(_ schemas: Schemas) throws -> JSONValue {
        ["anyOf": [try schemas.of(Wrapped.self).schema, ["type": "null"]]]
    }
    fileprivate static var empty: Any { Self.none as Any }
}

/// A type whose values are listed: enums of texts or numbers.
extension RawRepresentable where Self: CaseIterable {
    fileprivate static var listed: (schema: JSONValue, first: Any)? {
        let values: [JSONValue] = allCases.compactMap { one in
            switch one.rawValue {
            case let text as String: return .text(text)
            case let number as any BinaryInteger: return .integer(Int64(number))
            default: return nil
            }
        }
        guard let first = allCases.first, values.count == allCases.count else { return nil }
        return (["enum": .list(values)], first)
    }
}

private final class Schemas {
    var definitions: [JSONValue.Member] = []
    /// What is being described, from the outside in.
    private var open: [ObjectIdentifier] = []
    /// By number, since names of types may have what a reference has to escape.
    private var recursive: [ObjectIdentifier: String] = [:]

    /// The schema of a type and a value of it; no value: the type is being described further out.
    func of<T: Decodable>(_ type: T.Type) throws -> (schema: JSONValue, value: T?) {
        if let known = type as? any HasJSONSchema.Type { return (known.jsonSchema, nil) }
        if let container = type as? any Container.Type { return (try container.schema(self), container.empty as? T) }
        if let plain = Self.plain[ObjectIdentifier(type)] { return (plain.schema, plain.value as? T) }
        if let listed = (type as? any (RawRepresentable & CaseIterable).Type)?.listed { return (listed.schema, listed.first as? T) }
        let id = ObjectIdentifier(type)
        if open.contains(id) {
            let name = recursive[id] ?? "t\(recursive.count)"
            recursive[id] = name
            return (["$ref": "#/$defs/\(name)"], nil)
        }
        return try described(type, id)
    }

    private func described<T: Decodable>(_ type: T.Type, _ id: ObjectIdentifier) throws -> (schema: JSONValue, value: T?) {
        open.append(id)
        let notes = Notes()
        var value: T?
        do {
            value = try T(from: Recorder(self, notes))
        } catch let error as MoteError {
            throw error
        } catch is Unknown {
            // What is inside is known further out; the rest of the type is not.
            throw Self.unseen(type, "it holds itself otherwise than in a list, an optional or a dictionary")
        } catch {
            throw Self.unseen(type, "\(error)")
        }
        open.removeLast()
        guard let schema = notes.schema else { throw Self.unseen(type, "it reads nothing") }
        guard let name = recursive[id] else { return (schema, value) }
        definitions.append(JSONValue.Member(name, schema))
        return (["$ref": "#/$defs/\(name)"], value)
    }

    static func unseen(_ type: Any.Type, _ why: String) -> MoteError {
        MoteError(
            code: .invalidArgument,
            message: "\(type): its JSON Schema cannot be seen: \(why): give one, or let the type be CaseIterable or adopt HasJSONSchema")
    }

    private static let plain: [ObjectIdentifier: (schema: JSONValue, value: any Sendable)] = [
        ObjectIdentifier(Bool.self): (["type": "boolean"], false),
        ObjectIdentifier(String.self): (["type": "string"], ""),
        ObjectIdentifier(Double.self): (["type": "number"], 0.0),
        ObjectIdentifier(Float.self): (["type": "number"], Float(0)),
        ObjectIdentifier(Decimal.self): (["type": "number"], Decimal(0)),
        ObjectIdentifier(Int.self): (["type": "integer"], 0),
        ObjectIdentifier(Int64.self): (["type": "integer"], Int64(0)),
        ObjectIdentifier(UInt.self): (["type": "integer", "minimum": 0], UInt(0)),
        ObjectIdentifier(UInt64.self): (["type": "integer", "minimum": 0], UInt64(0)),
        ObjectIdentifier(Int8.self): (integers(Int8.self), Int8(0)),
        ObjectIdentifier(Int16.self): (integers(Int16.self), Int16(0)),
        ObjectIdentifier(Int32.self): (integers(Int32.self), Int32(0)),
        ObjectIdentifier(UInt8.self): (integers(UInt8.self), UInt8(0)),
        ObjectIdentifier(UInt16.self): (integers(UInt16.self), UInt16(0)),
        ObjectIdentifier(UInt32.self): (integers(UInt32.self), UInt32(0)),
        ObjectIdentifier(URL.self): (["type": "string", "format": "uri"], URL(fileURLWithPath: "/")),
        ObjectIdentifier(UUID.self): (["type": "string", "format": "uuid"], UUID()),
        // As JSONDecoder reads it unless it is told otherwise: seconds since 2001.
        ObjectIdentifier(Date.self): (["type": "number"], Date()),
    ]

    private static func integers<T: FixedWidthInteger>(_ type: T.Type) -> JSONValue {
        ["type": "integer", "minimum": .integer(Int64(T.min)), "maximum": .integer(Int64(T.max))]
    }
}

/// Nothing of this type can be made here.
private struct Unknown: Error {}

/// What one `init(from:)` asked for.
private final class Notes {
    var properties: [JSONValue.Member]?
    var required: [JSONValue] = []
    var single: JSONValue?
    /// What may be missing: it was asked whether it is.
    var optional: Set<String> = []

    var schema: JSONValue? {
        guard let properties else { return single }
        return ["type": "object", "properties": .object(properties), "required": .list(required), "additionalProperties": false]
    }

    func note(_ name: String, _ schema: JSONValue) {
        if properties?.contains(where: { $0.name == name }) == true { return }
        properties = (properties ?? []) + [JSONValue.Member(name, schema)]
        if !optional.contains(name) { required.append(.text(name)) }
    }
}

private struct Recorder: Decoder {
    let schemas: Schemas
    let notes: Notes
    var codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]

    init(_ schemas: Schemas, _ notes: Notes) {
        self.schemas = schemas
        self.notes = notes
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        notes.properties = notes.properties ?? []
        return KeyedDecodingContainer(Keyed<Key>(decoder: self))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        throw Schemas.unseen([Any].self, "a list that is read by hand")
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { Single(decoder: self) }

    func value<T: Decodable>(_ type: T.Type, _ note: (JSONValue) -> Void) throws -> T {
        let (schema, value) = try schemas.of(type)
        note(schema)
        guard let value else { throw Unknown() }
        return value
    }
}

private struct Keyed<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let decoder: Recorder
    var codingPath: [any CodingKey] { decoder.codingPath }
    var allKeys: [Key] { [] }

    func decodeNil(forKey key: Key) -> Bool { false }

    func contains(_ key: Key) -> Bool {
        decoder.notes.optional.insert(key.stringValue)
        return true
    }

    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        try decoder.value(type) { decoder.notes.note(key.stringValue, $0) }
    }

    func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
        decoder.notes.optional.insert(key.stringValue)
        decoder.notes.note(key.stringValue, try decoder.schemas.of(type).schema)
        return nil
    }

    func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key) throws -> KeyedDecodingContainer<Nested> {
        throw Schemas.unseen(Nested.self, "an object inside of another that is read by hand")
    }
    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer { try decoder.unkeyedContainer() }
    func superDecoder() throws -> any Decoder { decoder }
    func superDecoder(forKey key: Key) throws -> any Decoder { decoder }
}

private struct Single: SingleValueDecodingContainer {
    let decoder: Recorder
    var codingPath: [any CodingKey] { decoder.codingPath }

    func decodeNil() -> Bool { false }

    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        try decoder.value(type) { decoder.notes.single = $0 }
    }
}
