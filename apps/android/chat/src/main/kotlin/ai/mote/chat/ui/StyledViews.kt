package ai.mote.chat.ui

import ai.mote.chat.text.Style
import ai.mote.chat.text.StyledText
import android.graphics.Typeface
import android.text.SpannableString
import android.text.Spanned.SPAN_EXCLUSIVE_EXCLUSIVE
import android.text.style.BackgroundColorSpan
import android.text.style.LeadingMarginSpan
import android.text.style.QuoteSpan
import android.text.style.RelativeSizeSpan
import android.text.style.StrikethroughSpan
import android.text.style.StyleSpan
import android.text.style.TypefaceSpan
import android.text.style.URLSpan

/** What a TextView shows of a text with styles. */
internal fun spanned(styled: StyledText): CharSequence {
    val text = SpannableString(styled.text)
    for (span in styled.spans) {
        for (look in looks(span.style)) text.setSpan(look, span.start, span.end, SPAN_EXCLUSIVE_EXCLUSIVE)
    }
    return text
}

private const val CODE_BACKGROUND = 0x22808080

private fun looks(style: Style): List<Any> = when (style) {
    Style.Bold -> listOf(StyleSpan(Typeface.BOLD))
    Style.Italic -> listOf(StyleSpan(Typeface.ITALIC))
    Style.Struck -> listOf(StrikethroughSpan())
    Style.Code -> listOf(TypefaceSpan("monospace"), BackgroundColorSpan(CODE_BACKGROUND))
    Style.CodeBlock -> listOf(TypefaceSpan("monospace"), BackgroundColorSpan(CODE_BACKGROUND), RelativeSizeSpan(0.9f))
    Style.Quote -> listOf(QuoteSpan())
    Style.Rule -> emptyList()
    is Style.Heading -> listOf(StyleSpan(Typeface.BOLD), RelativeSizeSpan(1.4f - 0.07f * style.level))
    is Style.Item -> listOf(LeadingMarginSpan.Standard(40 * style.depth, 40 * style.depth + 40))
    is Style.Link -> listOf(URLSpan(style.url))
}
