import Foundation
import Mote

/// An option as the library's table has it.
public struct Setting: Hashable, Sendable, Identifiable {
    public let name: String
    public let type: String
    public let help: String
    public let accepted: String
    public let unit: String
    /// As a text.
    public let standard: String
    public let choices: [String]
    public let minimum: Double?
    public let maximum: Double?

    public var id: String { name }

    /// Why a text is no value of it; nil: it is one. Empty: the default.
    public func problem(_ text: String) -> String? {
        if text.isEmpty { return nil }
        let number = Double(text)
        let fits: Bool
        switch type {
        case "flag": fits = text == "true" || text == "false"
        case "choice": fits = choices.contains(text)
        case "integer": fits = number.map { $0.truncatingRemainder(dividingBy: 1) == 0 && isInRange($0) } ?? false
        case "number": fits = number.map(isInRange) ?? false
        default: fits = true
        }
        return fits ? nil : "\(name) = \(text): must be \(accepted)"
    }

    private func isInRange(_ number: Double) -> Bool {
        number >= minimum ?? -.greatestFiniteMagnitude && number <= maximum ?? .greatestFiniteMagnitude
    }

    fileprivate func value(_ text: String) -> JSONValue {
        switch type {
        case "flag": return .bool(text == "true")
        case "integer": return Double(text).flatMap { Int64(exactly: $0) }.map { .integer($0) } ?? .text(text)
        case "number": return Double(text).map { .number($0) } ?? .text(text)
        default: return .text(text)
        }
    }

    /// Those that a settings screen shows, in its order.
    public static let all: [Setting] = (try? MoteLibrary.describeOptions()).map { of($0) } ?? []

    private static let shown = [
        "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "max_new_tokens", "max_time", "pace", "seed", "stop_strings",
    ]

    /// json: what `MoteLibrary.describeOptions` gives
    private static func of(_ json: String) -> [Setting] {
        let rows = JSON(json).list
        return shown.compactMap { name in rows.first { $0["name"].text == name } }.map { row in
            Setting(
                name: row["name"].text, type: row["type"].text, help: row["help"].text, accepted: row["accepted"].text,
                unit: row["unit"].text, standard: row["default"].text, choices: row["choices"].list.map(\.text),
                minimum: row["minimum"].number, maximum: row["maximum"].number)
        }
    }
}

/// What the app itself refuses, in a sentence.
public struct Refusal: LocalizedError, Hashable {
    public let errorDescription: String?

    init(_ sentence: String) {
        errorDescription = sentence
    }
}

/// What a chat is set to: the system prompt, and options of a generation by name as texts.
public struct ChatSettings: Hashable, Sendable, Codable {
    public var instructions: String
    public var values: [String: String]

    public init(instructions: String = "", values: [String: String] = [:]) {
        self.instructions = instructions
        self.values = values
    }

    /// Errors: ``Refusal`` for what is no value of its option
    public func options(_ table: [Setting] = Setting.all) throws -> Options {
        var options = Options()
        for setting in table {
            guard let text = values[setting.name], !text.isEmpty else { continue }
            if let problem = setting.problem(text) { throw Refusal(problem) }
            options[setting.name] = setting.value(text)
        }
        return options
    }
}
