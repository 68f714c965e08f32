package ai.mote

import kotlinx.serialization.descriptors.SerialDescriptor
import kotlinx.serialization.serializer

/** What a model may call. json: OpenAI's form, {"type": "function", "function": {"name": .., "parameters": ..}} */
public class Tool(public val json: String) {
    /** parameters: a JSON Schema of an object, as maps and lists */
    public constructor(name: String, description: String, parameters: Map<String, Any?>) : this(
        JsonText.of(
            mapOf(
                "type" to "function",
                "function" to mapOf("name" to name, "description" to description, "parameters" to parameters),
            ),
        ),
    )

    public companion object {
        /** A tool whose arguments are a serializable class. */
        public inline fun <reified Arguments> of(name: String, description: String): Tool =
            of(name, description, serializer<Arguments>().descriptor)

        public fun of(name: String, description: String, arguments: SerialDescriptor): Tool =
            Tool(name, description, jsonSchema(arguments))
    }
}
