package ai.mote

import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test
import java.lang.reflect.Method
import kotlin.test.assertFailsWith

/** The typed options against the library's table. */
class OptionsTest {
    private class Row(json: JsonObject) {
        private val texts = json.mapValues { (it.value as? JsonPrimitive)?.content.orEmpty() }
        val name = texts.getValue("name")
        val scope = texts.getValue("scope")
        val type = texts.getValue("type")
        val camel = name.split("_").let { it[0] + it.drop(1).joinToString("") { word -> word.replaceFirstChar(Char::uppercase) } }
    }

    private val table = (Json.parseToJsonElement(Mote.describeOptions()) as JsonArray).map { Row(it as JsonObject) }
    private val functions = Class.forName("ai.mote.OptionFunctionsKt")

    /** By the class of a parameter and the table's type. */
    private fun sample(row: Row, type: Class<*>): Any = when (row.type to type.simpleName) {
        "flag" to "Boolean" -> true
        "integer" to "Integer" -> 7
        "integer" to "Long" -> 7L
        "number" to "Double", "number" to "Number" -> 0.25
        "text" to "String", "choice" to "String" -> "x"
        "texts" to "List" -> listOf("x")
        "tokens" to "List" -> listOf("x", 7)
        "token_ids" to "List" -> listOf(7)
        "token_id_lists" to "List" -> listOf(listOf(7))
        "biases" to "Map" -> if (row.name == "logit_bias") mapOf(7 to 0.5) else mapOf(listOf(7) to 0.5)
        else -> error("${row.name}: ${row.type} of the table is a ${type.simpleName}")
    }

    private fun given(options: Options) = Json.parseToJsonElement(options.toString().removePrefix("Options ")) as JsonObject

    private fun method(of: Class<*>, name: String): Method = of.declaredMethods.single { it.name == name }

    @Test
    fun theFunctionsHaveTheTablesOptionsInItsOrder() {
        val names = mapOf(
            "generation" to "GenerateOptions", "beam_search" to "BeamSearchOptions", "session" to "SessionOptions", "model" to "ModelOptions",
        )
        assertEquals(table.map { it.scope }.toSet(), names.keys)
        for ((scope, name) in names) {
            val rows = table.filter { it.scope == scope }
            val function = method(functions, name)
            assertEquals(rows.size, function.parameterCount, name)
            for ((i, row) in rows.withIndex()) {
                val arguments = arrayOfNulls<Any>(rows.size)
                arguments[i] = sample(row, function.parameterTypes[i])
                assertEquals(setOf(row.name), given(function.invoke(null, *arguments) as Options).keys, "parameter ${i + 1} of $name")
            }
        }
    }

    @Test
    fun theirParametersAreNamedAsTheTablesOptions() {
        val parameters = functions.getAnnotation(Metadata::class.java).data2.toList()
        val known = table.map { it.camel }.toSet()
        assertEquals(table.map { it.camel }, parameters.filter { it in known })
    }

    @Test
    fun theBuilderHasAMethodForEachOption() {
        val builder = OptionsBuilder::class.java
        for (row in table) {
            val method = method(builder, row.camel)
            val value = sample(row, method.parameterTypes[0])
            val built = (method.invoke(Options.builder(), value) as OptionsBuilder).build()
            assertEquals(setOf(row.name), given(built).keys)
            val taken = method.invoke(method.invoke(Options.builder(), value), null) as OptionsBuilder
            assertEquals(emptySet<String>(), given(taken.build()).keys)
        }
        val methods = builder.declaredMethods.filter { java.lang.reflect.Modifier.isPublic(it.modifiers) }.map { it.name }.toSet()
        assertEquals(table.map { it.camel }.toSet() + "build", methods)
    }

    @Test
    fun areTheSameAsByName() = runBlocking<Unit> {
        Model.open(KotlinTest.DEMO).use { model ->
            model.session(SessionOptions(contextLength = 128, threads = 1)).use { session ->
                suspend fun text(options: Options): String {
                    session.reset()
                    return session.generate("def ", options).toList().joinToString("")
                }
                val typed = GenerateOptions(maxNewTokens = 12, temperature = 0.7, topK = 5, seed = 3)
                val named = options("max_new_tokens" to 12, "temperature" to 0.7, "top_k" to 5, "seed" to 3)
                assertEquals(text(named), text(typed))
                val likeliestToken = GenerateOptions(maxNewTokens = 1, temperature = 0.0)
                val likeliest = text(likeliestToken)
                val id = model.tokenize(likeliest, addSpecial = false).first()
                for (never in listOf(
                    GenerateOptions(logitBias = mapOf(id to Double.NEGATIVE_INFINITY)),
                    GenerateOptions(sequenceBias = mapOf(listOf(id) to Double.NEGATIVE_INFINITY)),
                )) {
                    assert(text(likeliestToken.with(never)) != likeliest) { "$never" }
                }
                val error = assertFailsWith<ArgumentException> { text(GenerateOptions(topP = 2.5)) }
                assertEquals("top_p = 2.5: must be a number, 0..1 (1: off)", error.message)
                assertFailsWith<ArgumentException> { text(SessionOptions(threads = 1)) }
            }
        }
    }

    @Test
    fun addUp() {
        val all = GenerateOptions(topK = 3, seed = 1).with(GenerateOptions(topK = 4)).with(BeamSearchOptions(numBeams = 2))
        assertEquals("Options {\"seed\":1,\"top_k\":4,\"num_beams\":2}", all.toString())
    }
}
