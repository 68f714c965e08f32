package ai.mote.chat

import ai.mote.Mote
import ai.mote.Options
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.contentOrNull
import kotlinx.serialization.json.doubleOrNull

/** An option as the library's table has it. */
data class Setting(
    val name: String,
    val type: String,
    val help: String,
    val accepted: String,
    val unit: String,
    val default: String,
    val choices: List<String>,
    val minimum: Double?,
    val maximum: Double?,
) {
    /** Why a text is no value of it; null: it is one. Empty: the default. */
    fun problem(text: String): String? {
        if (text.isEmpty()) return null
        val number = text.toDoubleOrNull()
        val fits = when (type) {
            "flag" -> text == "true" || text == "false"
            "choice" -> text in choices
            "integer" -> number != null && number % 1.0 == 0.0 && isInRange(number)
            "number" -> number != null && isInRange(number)
            else -> true
        }
        return if (fits) null else "$name = $text: must be $accepted"
    }

    private fun isInRange(number: Double) = number >= (minimum ?: number) && number <= (maximum ?: number)

    internal fun value(text: String): Any = when (type) {
        "flag" -> text.toBoolean()
        "integer" -> text.toDouble().toLong()
        "number" -> text.toDouble()
        else -> text
    }
}

/** What a chat is set to: the system prompt, and options of a generation by name as texts. */
data class ChatSettings(val instructions: String = "", val values: Map<String, String> = emptyMap()) {
    /** Errors: IllegalArgumentException for what is no value of its option */
    fun options(table: List<Setting> = SETTINGS): Options {
        val given = LinkedHashMap<String, Any>()
        for (setting in table) {
            val text = values[setting.name].orEmpty()
            if (text.isEmpty()) continue
            setting.problem(text)?.let { throw IllegalArgumentException(it) }
            given[setting.name] = setting.value(text)
        }
        return Options.of(given)
    }
}

/** Those that a settings screen shows, in this order. */
private val SHOWN = listOf(
    "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "max_new_tokens", "max_time", "pace", "seed", "stop_strings",
)

val SETTINGS: List<Setting> by lazy { settingsOf(Mote.describeOptions()) }

/** json: what Mote.describeOptions gives */
internal fun settingsOf(json: String): List<Setting> {
    val rows = (Json.parseToJsonElement(json) as JsonArray).map { it as JsonObject }.associateBy { it.text("name") }
    return SHOWN.mapNotNull { rows[it] }.map { row ->
        Setting(
            row.text("name"), row.text("type"), row.text("help"), row.text("accepted"), row.text("unit"),
            textOf(row["default"]), (row["choices"] as JsonArray).map(::textOf), row.number("minimum"), row.number("maximum"),
        )
    }
}

internal fun JsonObject.text(name: String): String = textOf(this[name])

private fun JsonObject.number(name: String): Double? = (this[name] as? JsonPrimitive)?.doubleOrNull

private fun textOf(value: JsonElement?): String = when (value) {
    null, JsonNull -> ""
    is JsonPrimitive -> value.contentOrNull.orEmpty()
    else -> value.toString()
}
