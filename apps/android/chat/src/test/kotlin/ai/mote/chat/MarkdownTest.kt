package ai.mote.chat

import ai.mote.chat.text.Span
import ai.mote.chat.text.Style
import ai.mote.chat.text.styled
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import java.util.Random

class MarkdownTest {
    /** The parts that have a style, as text. */
    private fun parts(markdown: String): List<Pair<Style, String>> {
        val styled = styled(markdown)
        return styled.spans.map { it.style to styled.text.substring(it.start, it.end) }
    }

    @Test
    fun readsEmphasisAndCode() {
        assertEquals("a bold b", styled("a **bold** b").text)
        assertEquals(listOf(Style.Bold to "bold"), parts("a **bold** b"))
        assertEquals(listOf(Style.Italic to "one", Style.Struck to "two"), parts("*one* ~~two~~"))
        assertEquals(listOf(Style.Bold to "in", Style.Italic to "out in out"), parts("*out **in** out*"))
        assertEquals(listOf(Style.Code to "a*b*"), parts("`a*b*`"))
        assertEquals(listOf(Style.Code to "a`b"), parts("``a`b``"))
    }

    @Test
    fun leavesOtherStarsAndUnderscoresAlone() {
        for (text in listOf("2 * 3 * 4", "snake_case_name", "a ** b", "**", "_", "a*", "*a", "`", "[a](", "[a] (b)")) {
            assertEquals(text.trimEnd().removePrefix("* "), styled(text).text.removePrefix("\u2022 ").trimEnd(), text)
        }
        assertEquals("*a*", styled("\\*a\\*").text)
    }

    @Test
    fun readsBlocks() {
        assertEquals(listOf(Style.Heading(2) to "Title"), parts("## Title"))
        assertEquals(listOf(Style.Quote to "said"), parts("> said"))
        assertEquals(listOf(Style.Item(0) to "\u2022 one\n", Style.Item(1) to "2. two"), parts("- one\n  2. two"))
        assertEquals(listOf(Style.Rule), parts("a\n\n---\n\nb").map { it.first })
        assertEquals(listOf(Style.CodeBlock to "x = **1**\n", Style.Bold to "b"), parts("```python\nx = **1**\n```\n**b**"))
        assertEquals("a\nb", styled("a\r\nb\n\n").text)
        assertEquals("#hash", styled("#hash").text)
    }

    @Test
    fun aTextThatIsBeingWrittenIsReadAsFarAsItIsClear() {
        assertEquals(listOf(Style.CodeBlock to "print("), parts("```\nprint("))
        assertEquals("a **bo", styled("a **bo").text)
        assertEquals(emptyList<Span>(), styled("").spans)
    }

    @Test
    fun linksOpenPagesOnly() {
        assertEquals(listOf(Style.Link("https://a.b/c") to "here"), parts("[here](https://a.b/c)"))
        assertEquals("here", styled("[here](intent:x)").text)
        assertEquals(emptyList<Span>(), styled("[here](javascript:1)").spans)
        assertEquals(listOf(Style.Bold, Style.Link("http://a")), parts("[**b**](http://a \"title\")").map { it.first })
    }

    @Test
    fun spansLieInTheTextWhateverIsRead() {
        val random = Random(1)
        val pieces = listOf("*", "**", "_", "`", "```", "\n", "- ", "> ", "# ", "[", "](", ")", "~~", "\\", "a", " b", "1. ", "\ud83d\ude00")
        repeat(3000) {
            val markdown = (0..random.nextInt(30)).joinToString("") { pieces[random.nextInt(pieces.size)] }
            val styled = styled(markdown)
            for (span in styled.spans) assertTrue(0 <= span.start && span.start < span.end && span.end <= styled.text.length, markdown)
        }
    }

    @Test
    fun takesTimeInProportionToTheText() {
        for (piece in listOf("*a ", "[", "`a", "**_", "_a*b_ ", "> ", "[a](")) {
            val text = piece.repeat(200_000 / piece.length)
            assertTrue(styled(text).text.length <= text.length + 2, piece)
        }
    }
}
