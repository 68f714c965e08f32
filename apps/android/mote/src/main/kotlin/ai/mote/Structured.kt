package ai.mote

import kotlinx.coroutines.flow.fold
import kotlinx.serialization.KSerializer
import kotlinx.serialization.json.Json
import kotlinx.serialization.serializer

/**
 * What the model writes after a prompt, as a value of a serializable class: the text follows its JSON Schema.
 * Errors: SerializationException if the text is cut off, by max_new_tokens or the context
 */
public suspend inline fun <reified T> Session.generateJson(prompt: String, options: Options = Options.NONE): T =
    generateJson(serializer<T>(), prompt, options)

public suspend fun <T> Session.generateJson(
    serializer: KSerializer<T>,
    prompt: String,
    options: Options = Options.NONE,
): T {
    val text = StringBuilder()
    generate(prompt, options.following(serializer)).collect { text.append(it) }
    return Json.decodeFromString(serializer, text.toString())
}

/** A reply to a message of the user, likewise. */
public suspend inline fun <reified T> Chat.sendForJson(text: String, options: Options = Options.NONE): T =
    sendForJson(serializer<T>(), text, options)

public suspend fun <T> Chat.sendForJson(
    serializer: KSerializer<T>,
    text: String,
    options: Options = Options.NONE,
): T {
    val reply = send(text, options.following(serializer)).fold(StringBuilder()) { written, event ->
        if (event is ChatEvent.Content) written.append(event.text) else written
    }
    return Json.decodeFromString(serializer, reply.toString())
}

private fun Options.following(serializer: KSerializer<*>): Options =
    with("json_schema", jsonSchema(serializer.descriptor))

/** Options by name, such as options("max_new_tokens" to 64, "temperature" to 0.7). */
public fun options(vararg values: Pair<String, Any?>): Options = Options.of(values.toMap())
