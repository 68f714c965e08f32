import Foundation

/// A part of a text with one look.
public struct Run: Hashable, Sendable {
    public struct Style: OptionSet, Hashable, Sendable {
        public let rawValue: Int
        public static let bold = Style(rawValue: 1)
        public static let italic = Style(rawValue: 2)
        public static let struck = Style(rawValue: 4)
        public static let code = Style(rawValue: 8)

        public init(rawValue: Int) {
            self.rawValue = rawValue
        }
    }

    public var text: String
    public let style: Style
    /// By http and https only: what a model writes must not open other apps by schemes of theirs.
    public let link: URL?

    public init(_ text: String, _ style: Style = [], link: URL? = nil) {
        self.text = text
        self.style = style
        self.link = link
    }
}

/// A paragraph and the like.
public enum Block: Hashable, Sendable {
    case paragraph([Run])
    /// level: 1 to 6
    case heading(level: Int, [Run])
    /// depth: 0 is the outermost list   mark: a bullet, or a number as it was written
    case item(depth: Int, mark: String, [Run])
    case quote([Run])
    case code(language: String, String)
    case rule

    /// Without marks.
    public var text: String {
        switch self {
        case .paragraph(let runs), .heading(_, let runs), .quote(let runs): return runs.map(\.text).joined()
        case .item(_, let mark, let runs): return mark + " " + runs.map(\.text).joined()
        case .code(_, let text): return text
        case .rule: return ""
        }
    }
}

/// Reads the Markdown that models write: headings, lists, quotes, code, emphasis, links, rules. A text that is still being written is
/// read as far as it is clear: what a mark has opened and nothing has closed is plain, a code block goes to the end.
/// Time: proportional to the text.
public func blocks(ofMarkdown text: String) -> [Block] {
    var reader = BlockReader()
    let lines = text.replacingOccurrences(of: "\r\n", with: "\n").split(separator: "\n", omittingEmptySubsequences: false)
    var next = 0
    while next < lines.count { next = reader.read(lines, next) }
    reader.endParagraph()
    return reader.blocks
}

private struct BlockReader {
    var blocks: [Block] = []
    private var paragraph: [Substring] = []

    /// Returns the line after what was read.
    mutating func read(_ lines: [Substring], _ index: Int) -> Int {
        let line = lines[index]
        let text = line.trimmed
        if let fence = Self.fence(text) {
            endParagraph()
            return code(lines, index, fence)
        }
        let level = text.prefix { $0 == "#" }.count
        if text.isEmpty {
            endParagraph()
        } else if (1...6).contains(level), text.dropFirst(level).first == " " {
            add(.heading(level: level, runs(of: text.dropFirst(level).trimmed)))
        } else if text.first == ">" {
            add(.quote(runs(of: text.dropFirst().trimmed)))
        } else if Self.isRule(text) {
            add(.rule)
        } else if let item = Self.item(line) {
            add(item)
        } else {
            paragraph.append(line)
        }
        return index + 1
    }

    mutating func endParagraph() {
        if paragraph.isEmpty { return }
        blocks.append(.paragraph(runs(of: Substring(paragraph.joined(separator: "\n")))))
        paragraph = []
    }

    private mutating func add(_ block: Block) {
        endParagraph()
        blocks.append(block)
    }

    /// The characters that open a block of code.
    private static func fence(_ text: Substring) -> Substring? {
        guard let mark = text.first, mark == "`" || mark == "~" else { return nil }
        let fence = text.prefix { $0 == mark }
        return fence.count >= 3 ? fence : nil
    }

    private mutating func code(_ lines: [Substring], _ first: Int, _ fence: Substring) -> Int {
        var next = first + 1
        while next < lines.count, !Self.ends(lines[next].trimmed, fence) { next += 1 }
        let language = lines[first].trimmed.dropFirst(fence.count).trimmed
        blocks.append(.code(language: String(language), lines[first + 1..<next].joined(separator: "\n")))
        return next + 1
    }

    private static func ends(_ text: Substring, _ fence: Substring) -> Bool {
        text.count >= fence.count && text.allSatisfy { $0 == fence.first }
    }

    private static func isRule(_ text: Substring) -> Bool {
        guard let mark = text.first, mark == "-" || mark == "*" || mark == "_" else { return false }
        return text.allSatisfy { $0 == mark || $0 == " " } && text.filter { $0 == mark }.count >= 3
    }

    private static func item(_ line: Substring) -> Block? {
        let indent = line.prefix { $0 == " " || $0 == "\t" }
        let rest = line.dropFirst(indent.count)
        let digits = rest.prefix { $0.isASCII && $0.isNumber }
        let mark: String
        if let bullet = rest.first, "-*+".contains(bullet) {
            mark = "\u{2022}"
        } else if (1...9).contains(digits.count), let end = rest.dropFirst(digits.count).first, end == "." || end == ")" {
            mark = String(digits) + String(end)
        } else {
            return nil
        }
        let text = rest.dropFirst(digits.isEmpty ? 1 : digits.count + 1)
        guard let space = text.first, space == " " || space == "\t" else { return nil }
        let width = indent.reduce(0) { $0 + ($1 == "\t" ? 4 : 1) }
        return .item(depth: width / 2, mark: mark, runs(of: text.trimmed))
    }
}

private func runs(of text: Substring) -> [Run] {
    var reader = RunReader()
    reader.read(Array(text)[...], depth: 0, style: [], link: nil)
    return reader.runs
}

private struct RunReader {
    private static let mostDepth = 6
    private static let marks: [([Character], Run.Style)] = [
        (["*", "*"], .bold), (["_", "_"], .bold), (["~", "~"], .struck), (["*"], .italic), (["_"], .italic),
    ]
    private static let escapable = Set("\\`*_~[]()#+-.!>{}|")

    private(set) var runs: [Run] = []

    mutating func read(_ text: ArraySlice<Character>, depth: Int, style: Run.Style, link: URL?) {
        // A mark that does not come again is not looked for again.
        var unclosed = Set<[Character]>()
        var next = text.startIndex
        while next < text.endIndex {
            let after = depth < Self.mostDepth ? marked(text, next, depth, style, link, &unclosed) : nil
            if after == nil { add(text[next...next], style, link) }
            next = after ?? next + 1
        }
    }

    private mutating func add(_ text: ArraySlice<Character>, _ style: Run.Style, _ link: URL?) {
        if text.isEmpty { return }
        if let last = runs.last, last.style == style, last.link == link {
            runs[runs.count - 1].text.append(contentsOf: text)
        } else {
            runs.append(Run(String(text), style, link: link))
        }
    }

    /// Returns where what begins at a mark ends; nil: no mark begins here.
    private mutating func marked(
        _ text: ArraySlice<Character>, _ at: Int, _ depth: Int, _ style: Run.Style, _ link: URL?, _ unclosed: inout Set<[Character]>
    ) -> Int? {
        switch text[at] {
        case "\\":
            guard at + 1 < text.endIndex, Self.escapable.contains(text[at + 1]) else { return nil }
            add(text[at + 1...at + 1], style, link)
            return at + 2
        case "`":
            let mark = Array(text[at...].prefix { $0 == "`" })
            guard let end = closing(text, mark, at + mark.count, &unclosed) else { return nil }
            add(text[at + mark.count..<end].trimmed, style.union(.code), link)
            return end + mark.count
        case "*", "_", "~": return emphasis(text, at, depth, style, link, &unclosed)
        case "[": return linked(text, at, depth, style, &unclosed)
        default: return nil
        }
    }

    private mutating func emphasis(
        _ text: ArraySlice<Character>, _ at: Int, _ depth: Int, _ style: Run.Style, _ link: URL?, _ unclosed: inout Set<[Character]>
    ) -> Int? {
        guard let (mark, added) = Self.marks.first(where: { text[at...].starts(with: $0.0) }) else { return nil }
        let first = at + mark.count
        // Neither a product nor a name with underscores.
        if first >= text.endIndex || text[first].isWhitespace { return nil }
        if mark[0] == "_", at > text.startIndex, text[at - 1].isLetter || text[at - 1].isNumber { return nil }
        guard let end = closing(text, mark, first, &unclosed), end > first, !text[end - 1].isWhitespace else { return nil }
        let after = end + mark.count
        if mark[0] == "_", after < text.endIndex, text[after].isLetter || text[after].isNumber { return nil }
        read(text[first..<end], depth: depth + 1, style: style.union(added), link: link)
        return after
    }

    private mutating func linked(
        _ text: ArraySlice<Character>, _ at: Int, _ depth: Int, _ style: Run.Style, _ unclosed: inout Set<[Character]>
    ) -> Int? {
        guard let middle = closing(text, ["]", "("], at + 1, &unclosed), let end = closing(text, [")"], middle + 2, &unclosed) else { return nil }
        let address = String(text[middle + 2..<end].trimmed.prefix { $0 != " " })
        let isPage = address.hasPrefix("https://") || address.hasPrefix("http://")
        read(text[at + 1..<middle], depth: depth + 1, style: style, link: isPage ? URL(string: address) : nil)
        return end + 1
    }

    /// Where a mark comes next.
    private func closing(_ text: ArraySlice<Character>, _ mark: [Character], _ from: Int, _ unclosed: inout Set<[Character]>) -> Int? {
        if unclosed.contains(mark) { return nil }
        let isSingle = mark == ["*"] || mark == ["_"]
        var at = from
        while at + mark.count <= text.endIndex {
            if text[at...].starts(with: mark) {
                // Of a double mark neither half closes a single one.
                if !isSingle || at + 1 >= text.endIndex || text[at + 1] != mark[0] { return at }
                at += 1
            }
            at += 1
        }
        unclosed.insert(mark)
        return nil
    }
}

extension Collection where Element == Character, SubSequence: BidirectionalCollection {
    /// Without white space at its ends.
    fileprivate var trimmed: SubSequence.SubSequence {
        let rest = drop { $0.isWhitespace }
        return rest[..<(rest.lastIndex { !$0.isWhitespace }.map(rest.index(after:)) ?? rest.startIndex)]
    }
}
