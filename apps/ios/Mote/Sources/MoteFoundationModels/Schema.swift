import Foundation
import Mote

/// A JSON Schema as FoundationModels encodes it, with the properties of an object in the order of "x-order", in which a model is to
/// write them. JSONEncoder gives them in any.
func ordered(schema: Data) throws -> JSONValue {
    try JSONDecoder().decode(Tree.self, from: schema).ordered
}

private indirect enum Tree: Decodable {
    case value(JSONValue)
    case list([Tree])
    case object([String: Tree])

    init(from decoder: any Decoder) throws {
        if let object = try? [String: Tree](from: decoder) {
            self = .object(object)
            return
        }
        if let list = try? [Tree](from: decoder) {
            self = .list(list)
            return
        }
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .value(.null)
        } else if let flag = try? container.decode(Bool.self) {
            self = .value(.bool(flag))
        } else if let number = try? container.decode(Int64.self) {
            self = .value(.integer(number))
        } else if let number = try? container.decode(Double.self) {
            self = .value(.number(number))
        } else {
            self = .value(.text(try container.decode(String.self)))
        }
    }

    var ordered: JSONValue {
        switch self {
        case .value(let value): return value
        case .list(let list): return .list(list.map(\.ordered))
        case .object(let object): return .object(object.keys.sorted().filter { $0 != "x-order" }.map { member($0, of: object) })
        }
    }

    private func member(_ name: String, of object: [String: Tree]) -> JSONValue.Member {
        guard name == "properties", case .object(let properties)? = object[name] else {
            return JSONValue.Member(name, object[name]!.ordered)
        }
        var order: [String] = []
        if case .list(let names)? = object["x-order"] {
            for case .value(.text(let name)) in names where properties[name] != nil && !order.contains(name) { order.append(name) }
        }
        order += properties.keys.sorted().filter { !order.contains($0) }
        return JSONValue.Member(name, .object(order.map { JSONValue.Member($0, properties[$0]!.ordered) }))
    }
}
