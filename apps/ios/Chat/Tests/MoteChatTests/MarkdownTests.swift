import MoteChat
import XCTest

final class MarkdownTests: XCTestCase {
    private func runs(_ markdown: String) -> [Run] {
        guard case .paragraph(let runs)? = blocks(ofMarkdown: markdown).first else { return [] }
        return runs
    }

    private func text(_ markdown: String) -> String { blocks(ofMarkdown: markdown).map(\.text).joined(separator: "\n") }

    func testReadsEmphasisAndCode() {
        XCTAssertEqual(runs("a **bold** b"), [Run("a "), Run("bold", .bold), Run(" b")])
        XCTAssertEqual(runs("*one* ~~two~~"), [Run("one", .italic), Run(" "), Run("two", .struck)])
        XCTAssertEqual(runs("*out **in** out*"), [Run("out ", .italic), Run("in", [.bold, .italic]), Run(" out", .italic)])
        XCTAssertEqual(runs("`a*b*`"), [Run("a*b*", .code)])
        XCTAssertEqual(runs("``a`b``"), [Run("a`b", .code)])
    }

    func testLeavesOtherStarsAndUnderscoresAlone() {
        for plain in ["2 * 3 * 4", "snake_case_name", "a ** b", "**", "_", "a*", "*a", "`", "[a](", "[a] (b)", "#hash"] {
            XCTAssertEqual(blocks(ofMarkdown: plain), [.paragraph([Run(plain)])])
        }
        XCTAssertEqual(text("\\*a\\*"), "*a*")
    }

    func testReadsBlocks() {
        XCTAssertEqual(blocks(ofMarkdown: "## Title"), [.heading(level: 2, [Run("Title")])])
        XCTAssertEqual(blocks(ofMarkdown: "> said"), [.quote([Run("said")])])
        XCTAssertEqual(
            blocks(ofMarkdown: "- one\n  2. two"),
            [.item(depth: 0, mark: "\u{2022}", [Run("one")]), .item(depth: 1, mark: "2.", [Run("two")])])
        XCTAssertEqual(blocks(ofMarkdown: "a\n\n---\n\nb"), [.paragraph([Run("a")]), .rule, .paragraph([Run("b")])])
        XCTAssertEqual(
            blocks(ofMarkdown: "```python\nx = **1**\n\ny\n```\n**b**"),
            [.code(language: "python", "x = **1**\n\ny"), .paragraph([Run("b", .bold)])])
        XCTAssertEqual(blocks(ofMarkdown: "a\r\nb\n\n"), [.paragraph([Run("a\nb")])])
    }

    func testATextThatIsBeingWrittenIsReadAsFarAsItIsClear() {
        XCTAssertEqual(blocks(ofMarkdown: "```\nprint("), [.code(language: "", "print(")])
        XCTAssertEqual(blocks(ofMarkdown: "a **bo"), [.paragraph([Run("a **bo")])])
        XCTAssertEqual(blocks(ofMarkdown: ""), [])
    }

    func testLinksOpenPagesOnly() {
        XCTAssertEqual(runs("[here](https://a.b/c)"), [Run("here", link: URL(string: "https://a.b/c"))])
        XCTAssertEqual(runs("[here](tel:1)"), [Run("here")])
        XCTAssertEqual(runs("[here](javascript:1)"), [Run("here")])
        XCTAssertEqual(runs("[**b**](http://a \"title\")"), [Run("b", .bold, link: URL(string: "http://a"))])
    }

    func testWhateverIsReadIsNotEmptyAndLosesOnlyMarks() {
        let pieces = ["*", "**", "_", "`", "```", "\n", "- ", "> ", "# ", "[", "](", ")", "~~", "\\", "a", " b", "1. ", "\u{1F600}"]
        var random = SystemRandomNumberGenerator()
        for _ in 0..<3000 {
            let markdown = (0...Int.random(in: 0..<30, using: &random)).map { _ in pieces.randomElement(using: &random)! }.joined()
            let letters = { (text: String) in text.filter { $0 == "a" || $0 == "b" }.count }
            // Language of a code block, address of a link.
            XCTAssertLessThanOrEqual(letters(text(markdown)), letters(markdown), markdown)
            for case .paragraph(let runs) in blocks(ofMarkdown: markdown) {
                XCTAssertTrue(runs.allSatisfy { !$0.text.isEmpty }, markdown)
            }
        }
    }

    func testTakesTimeInProportionToTheText() {
        for piece in ["*a ", "[", "`a", "**_", "_a*b_ ", "> ", "[a]("] {
            let markdown = String(repeating: piece, count: 200_000 / piece.count)
            XCTAssertLessThanOrEqual(text(markdown).count, markdown.count)
        }
    }
}
