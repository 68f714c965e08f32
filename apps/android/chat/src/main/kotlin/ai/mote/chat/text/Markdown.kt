package ai.mote.chat.text

/** How a part of a text is to look. */
sealed class Style {
    object Bold : Style()

    object Italic : Style()

    object Struck : Style()

    object Code : Style()

    object CodeBlock : Style()

    object Quote : Style()

    object Rule : Style()

    data class Heading(val level: Int) : Style()

    /** depth: 0 is the outermost list */
    data class Item(val depth: Int) : Style()

    data class Link(val url: String) : Style()
}

/** A style of the characters from start to end, the last one excluded. */
data class Span(val style: Style, val start: Int, val end: Int)

/** A text without marks, and how its parts look. Spans never cross a text's ends and are not empty. */
data class StyledText(val text: String, val spans: List<Span>)

/**
 * Reads the Markdown that models write: headings, lists, quotes, code, emphasis, links, rules. A text that is still being
 * written is read as far as it is clear: what a mark has opened and nothing has closed is plain, a code block goes to the end.
 * Time: proportional to the text.
 */
fun styled(markdown: String): StyledText = MarkdownReader().read(markdown)

private class MarkdownReader {
    private val out = StringBuilder()
    private val spans = mutableListOf<Span>()

    fun read(markdown: String): StyledText {
        val lines = markdown.replace("\r\n", "\n").split('\n')
        var next = 0
        while (next < lines.size) {
            val fence = fenceOf(lines[next])
            next = if (fence != null) codeBlock(lines, next + 1, fence) else block(lines[next], next)
        }
        while (out.isNotEmpty() && out.last() == '\n') out.setLength(out.length - 1)
        val end = out.length
        return StyledText(out.toString(), spans.map { it.copy(end = minOf(it.end, end)) }.filter { it.start < it.end })
    }

    private fun fenceOf(line: String): String? {
        val text = line.trimStart()
        val mark = text.firstOrNull()?.takeIf { it == '`' || it == '~' } ?: return null
        return text.takeWhile { it == mark }.takeIf { it.length >= 3 }
    }

    private fun codeBlock(lines: List<String>, first: Int, fence: String): Int {
        var next = first
        val start = out.length
        while (next < lines.size && !isEndOf(lines[next], fence)) out.append(lines[next++]).append('\n')
        span(Style.CodeBlock, start)
        return next + 1
    }

    private fun isEndOf(line: String, fence: String): Boolean {
        val text = line.trim()
        return text.length >= fence.length && text.all { it == fence[0] }
    }

    private fun block(line: String, index: Int): Int {
        val text = line.trim()
        val level = text.takeWhile { it == '#' }.length
        val item = ITEM.matchAt(line, 0)
        when {
            level in 1..6 && text.getOrNull(level) == ' ' -> line(Style.Heading(level), text.drop(level + 1))
            text.startsWith(">") -> line(Style.Quote, text.drop(1).trimStart())
            RULE.matches(text) -> line(Style.Rule, "\u2500\u2500\u2500")
            item != null -> item(item, line)
            else -> line(null, line)
        }
        return index + 1
    }

    private fun item(match: MatchResult, line: String) {
        val (indent, bullet) = match.destructured
        val mark = if (bullet.length == 1) "\u2022 " else "$bullet "
        val start = out.length
        out.append(mark)
        inline(line.substring(match.range.last + 1))
        out.append('\n')
        span(Style.Item(indent.replace("\t", "    ").length / 2), start)
    }

    private fun line(style: Style?, text: String) {
        val start = out.length
        inline(text)
        if (style != null) span(style, start)
        out.append('\n')
    }

    private fun span(style: Style, start: Int) {
        if (out.length > start) spans.add(Span(style, start, out.length))
    }

    private fun inline(text: String, depth: Int = 0) {
        val unclosed = mutableSetOf<String>()
        var next = 0
        while (next < text.length) {
            val after = if (depth < MOST_DEPTH) marked(text, next, depth, unclosed) else null
            if (after == null) out.append(text[next])
            next = after ?: (next + 1)
        }
    }

    /** Returns where what begins at a mark ends; null: no mark begins here. */
    private fun marked(text: String, at: Int, depth: Int, unclosed: MutableSet<String>): Int? = when (text[at]) {
        '\\' -> escaped(text, at)
        '`' -> code(text, at, unclosed)
        '*', '_', '~' -> emphasis(text, at, depth, unclosed)
        '[' -> link(text, at, depth, unclosed)
        else -> null
    }

    private fun escaped(text: String, at: Int): Int? {
        val next = text.getOrNull(at + 1) ?: return null
        if (next !in "\\`*_~[]()#+-.!>{}|") return null
        out.append(next)
        return at + 2
    }

    private fun code(text: String, at: Int, unclosed: MutableSet<String>): Int? {
        var after = at
        while (after < text.length && text[after] == '`') after++
        val mark = text.substring(at, after)
        val end = closing(text, mark, at + mark.length, unclosed) ?: return null
        val start = out.length
        out.append(text.substring(at + mark.length, end).trim(' '))
        span(Style.Code, start)
        return end + mark.length
    }

    private fun emphasis(text: String, at: Int, depth: Int, unclosed: MutableSet<String>): Int? {
        val mark = MARKS.firstOrNull { text.startsWith(it.first, at) } ?: return null
        val (characters, style) = mark
        val first = at + characters.length
        // Neither a product nor a name with underscores.
        if (text.getOrElse(first) { ' ' }.isWhitespace()) return null
        if (characters[0] == '_' && at > 0 && text[at - 1].isLetterOrDigit()) return null
        val end = closing(text, characters, first, unclosed) ?: return null
        if (end == first || text[end - 1].isWhitespace()) return null
        if (characters[0] == '_' && text.getOrElse(end + characters.length) { ' ' }.isLetterOrDigit()) return null
        val start = out.length
        inline(text.substring(first, end), depth + 1)
        span(style, start)
        return end + characters.length
    }

    private fun link(text: String, at: Int, depth: Int, unclosed: MutableSet<String>): Int? {
        val middle = closing(text, "](", at + 1, unclosed) ?: return null
        val end = closing(text, ")", middle + 2, unclosed) ?: return null
        val url = text.substring(middle + 2, end).trim().substringBefore(' ')
        val start = out.length
        inline(text.substring(at + 1, middle), depth + 1)
        // What a model writes must not open other apps by schemes of theirs.
        if (url.startsWith("https://") || url.startsWith("http://")) span(Style.Link(url), start)
        return end + 1
    }

    /** Where a mark comes next; a mark that does not come again is not looked for again. */
    private fun closing(text: String, mark: String, from: Int, unclosed: MutableSet<String>): Int? {
        if (mark in unclosed) return null
        var found = text.indexOf(mark, from)
        // Of a double mark neither half closes a single one.
        while (mark in SINGLE && found >= 0 && text.startsWith(mark, found + 1)) found = text.indexOf(mark, found + 2)
        if (found < 0) unclosed.add(mark)
        return found.takeIf { it >= 0 }
    }

    private companion object {
        const val MOST_DEPTH = 6
        val SINGLE = setOf("*", "_")
        val ITEM = Regex("^([ \\t]*)([-*+]|\\d{1,9}[.)])[ \\t]+")
        val RULE = Regex("([-*_])( *\\1){2,}")
        val MARKS = listOf(
            "**" to Style.Bold,
            "__" to Style.Bold,
            "~~" to Style.Struck,
            "*" to Style.Italic,
            "_" to Style.Italic,
        )
    }
}
