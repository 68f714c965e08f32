import Foundation

/// A value of JSON, of which what is not there is empty.
struct JSON {
    private let value: Any?

    init(_ text: String) {
        self.init(value: try? JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed))
    }

    private init(value: Any?) {
        self.value = value
    }

    subscript(name: String) -> JSON { JSON(value: (value as? [String: Any])?[name]) }

    var list: [JSON] { (value as? [Any] ?? []).map { JSON(value: $0) } }

    /// In the order of their names.
    var members: [(name: String, value: JSON)] {
        (value as? [String: Any] ?? [:]).sorted { $0.key < $1.key }.map { ($0.key, JSON(value: $0.value)) }
    }

    var number: Double? { (value as? NSNumber)?.doubleValue }

    /// null: ""
    var text: String {
        switch value {
        case nil, is NSNull: return ""
        case let text as String: return text
        case let number as NSNumber: return number.stringValue
        default: return "\(value!)"
        }
    }

    /// The texts of a list.
    var words: String { list.map(\.text).joined(separator: " ") }
}
