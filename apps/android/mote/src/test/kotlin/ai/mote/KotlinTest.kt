package ai.mote

import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.onEach
import kotlinx.coroutines.flow.take
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.joinAll
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import kotlinx.serialization.ExperimentalSerializationApi
import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.Contextual
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.serializer
import org.junit.jupiter.api.AfterAll
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNotNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import java.util.Date
import kotlin.test.assertFailsWith

@Serializable
private enum class Colour {
    RED,

    @SerialName("dark green")
    GREEN,
}

@Serializable
private data class Point(val x: Int, val y: Byte = 3, val colour: Colour)

@Serializable
private data class Tree(val name: Boolean, val child: Tree? = null, val more: List<Tree> = emptyList())

@Serializable
private sealed class Shape {
    @Serializable
    @SerialName("circle")
    data class Circle(val radius: Int) : Shape()

    @Serializable
    @SerialName("square")
    data class Square(val side: Int, val tags: Map<String, Boolean>) : Shape()
}

@Serializable
private data class Open(@Contextual val date: Date)

class KotlinTest {
    private val greedy = options("temperature" to 0, "max_new_tokens" to 24)
    private val endless = options("ignore_eos" to true, "max_new_tokens" to 100_000)
    private val shifted = options("overflow" to "shift")

    private fun test(body: suspend () -> Unit) = runBlocking { withTimeout(60_000) { body() } }

    @Test
    fun streamsTextAndStatistics() = test {
        model.session().use { session ->
            var statistics: Statistics? = null
            val text = session.generate(PROMPT, greedy) { statistics = it }.toList().joinToString("")
            assertEquals(24, statistics!!.generatedTokens)
            assertTrue((PROMPT + text).startsWith(model.detokenize(session.tokens)))
            session.reset()
            val pieces = session.pieces(model.tokenize(PROMPT), greedy).toList()
            assertEquals(text, pieces.joinToString("") { it.text })
            assertEquals(FinishReason.LENGTH, pieces.last().finishReason)
        }
    }

    @Test
    fun aFlowIsColdAndMayBeCollectedAgain() = test {
        model.session().use { session ->
            val flow = session.generate(PROMPT, greedy)
            assertEquals(0, session.position)
            assertEquals(flow.toList().isEmpty(), flow.toList().isEmpty())
        }
    }

    @Test
    fun cancellingTheCoroutineCancelsTheCall() = test {
        model.session(shifted).use { session ->
            val started = CompletableDeferred<Unit>()
            coroutine {
                session.generate(PROMPT, endless).onEach { started.complete(Unit) }.toList()
            }.let { job ->
                started.await()
                val begin = System.nanoTime()
                job.cancelAndJoin()
                assertTrue(System.nanoTime() - begin < 1_000_000_000)
                assertTrue(job.isCancelled)
            }
            assertFalse(session.generate(PROMPT, greedy).toList().isEmpty())
        }
    }

    @Test
    fun cancellingWhileThePromptIsReadComesAtOnce() = test {
        model.session().use { session ->
            val ids = IntArray(2000) { 100 + it % 1000 }
            repeat(20) { i ->
                val job = coroutine { session.setTokens(ids) }
                delay(i.toLong())
                job.cancelAndJoin()
                session.reset()
            }
            assertEquals(0, session.setTokens(ids))
        }
    }

    @Test
    fun aCancelThatComesTooLateIsForgotten() = test {
        model.session().use { session ->
            session.append(PROMPT)
            repeat(200) {
                val job = coroutine { session.rewind(session.position) }
                job.cancelAndJoin()
                session.append("x")
                session.rewind(3)
            }
        }
    }

    @Test
    fun takingSomeOfAFlowLeavesTheSessionLittleFurther() = test {
        model.session().use { session ->
            val ids = model.tokenize(PROMPT)
            assertEquals(3, session.pieces(ids, endless).take(3).toList().size)
            assertTrue(session.position <= ids.size + 3 + 18, "${session.position}")
            assertFalse(session.generate("x", greedy).toList().isEmpty())
        }
    }

    @Test
    fun closingEndsAFlow() = test {
        val session = model.session(shifted)
        val pieces = session.pieces(model.tokenize(PROMPT), endless).onEach { session.close() }.toList()
        assertEquals(FinishReason.CANCELLED, pieces.last().finishReason)
        assertFailsWith<IllegalStateException> { session.tokens }
        assertFailsWith<IllegalStateException> { session.generate(PROMPT).toList() }
    }

    @Test
    fun errorsComeToWhoCollects() = test {
        val session = model.session()
        assertFailsWith<ArgumentException> { session.generate(PROMPT, options("nothing" to 1)).toList() }
        assertFailsWith<FileException> { Model.open("/nowhere.mote") }
        val mine = IllegalArgumentException("mine")
        assertEquals(
            "mine",
            assertFailsWith<IllegalArgumentException> {
                session.generate(PROMPT, greedy).collect { throw mine }
            }.message,
        )
        session.close()
    }

    @Test
    fun openingMayBeCancelled() = test {
        val fractions = ArrayList<Double>()
        Model.open(DEMO) { fractions += it }.close()
        assertEquals(1.0, fractions.last())
        val job = coroutine {
            Model.open(DEMO) { throw CancellationException("enough") }
        }
        job.join()
        assertTrue(job.isCancelled)
    }

    @Test
    fun chats() = test {
        model.chat("You write Python.").use { chat ->
            val options = options("seed" to 2, "max_new_tokens" to 48)
            val events = chat.send("Hello", options).toList()
            val text = events.filterIsInstance<ChatEvent.Content>().joinToString("") { it.text }
            val done = events.last() as ChatEvent.Done
            assertNotNull(done.finishReason)
            assertTrue(chat.messages.contains(text.take(8)), chat.messages)
            val again = chat.send("And again", options).toList().last() as ChatEvent.Done
            assertTrue(again.statistics.keptTokens >= done.statistics.promptTokens)
            assertEquals(5, chat.blocking.numMessages())
            chat.regenerate(options).toList()
            assertEquals(5, chat.blocking.numMessages())
        }
    }

    @Test
    fun whatWasWrittenOfACancelledReplyStays() = test {
        model.chat().use { chat ->
            val first = chat.send("Hello", options("seed" to 2)).first { it is ChatEvent.Content } as ChatEvent.Content
            assertEquals(2, chat.blocking.numMessages())
            assertTrue(chat.messages.contains(first.text.trim()), chat.messages)
            chat.continueReply(greedy).toList()
            assertEquals(2, chat.blocking.numMessages())
        }
    }

    @Test
    fun callsOfToolsAreEvents() = test {
        val tool = Tool.of<Point>("move", "Moves the turtle")
        model.chat(tools = listOf(tool)).use { chat ->
            chat.set(ai.mote.blocking.Chat.Field.TOOL_CHOICE, "required")
            val events = chat.send("Move", options("temperature" to 0, "max_new_tokens" to 400)).toList()
            val call = (events.first { it is ChatEvent.Call } as ChatEvent.Call).call
            assertEquals("move", call.name)
            Json.decodeFromString<Point>(call.arguments)
            chat.answer(call, "done \uD83D\uDE00")
            assertTrue(chat.messages.contains("done \uD83D\uDE00"))
            chat.set(ai.mote.blocking.Chat.Field.TOOL_CHOICE, "none")
            assertTrue(chat.reply(greedy).toList().last() is ChatEvent.Done)
        }
    }

    @Test
    fun generatesJsonOfClasses() = test {
        model.session().use { session ->
            val options = options("temperature" to 0, "max_new_tokens" to 400, "json_whitespace" to "compact")
            session.generateJson<Point>(PROMPT, options)
            session.reset()
            session.generateJson<Shape>(PROMPT, options)
            session.reset()
            session.generateJson<List<Colour>>(PROMPT, options.with("max_new_tokens", 1000).with("temperature", 1).with("seed", 3))
            session.reset()
            assertFailsWith<IllegalArgumentException> {
                session.generateJson<String>(PROMPT, options.with("max_new_tokens", 2))
            }
        }
        model.chat().use { it.sendForJson<Point>("A point", options("max_new_tokens" to 400)) }
    }

    @OptIn(ExperimentalSerializationApi::class)
    @Test
    fun schemasAreOfWhatSerializationWrites() = test {
        assertEquals(
            Json.parseToJsonElement(
                """{"type": "object", "properties": {
                "x": {"type": "integer", "minimum": -2147483648, "maximum": 2147483647},
                "y": {"type": "integer", "minimum": -128, "maximum": 127},
                "colour": {"enum": ["RED", "dark green"]}}, "required": ["x", "colour"],
                "additionalProperties": false}""",
            ),
            Json.parseToJsonElement(JsonText.of(jsonSchema(serializer<Point>().descriptor))),
        )
        for (descriptor in listOf(serializer<Tree>(), serializer<Shape>(), serializer<Map<String, List<Float?>>>())) {
            val schema = JsonText.of(jsonSchema(descriptor.descriptor))
            assertTrue(Json.parseToJsonElement(schema) is JsonObject)
            model.grammar(Syntax.JSON_SCHEMA, schema).close()
        }
        assertFailsWith<IllegalArgumentException> { jsonSchema(serializer<Open>().descriptor) }
        assertFailsWith<IllegalArgumentException> { jsonSchema(serializer<Map<Int, Int>>().descriptor) }
    }

    @Test
    fun sessionsOfABatchDecodeTogether() = test {
        val alone = model.session().use { it.generate(PROMPT, greedy).toList().joinToString("") }
        model.batch().use { batch ->
            val sessions = List(3) { model.session().apply { join(batch) } }
            val texts = runBlocking(Dispatchers.Default) {
                sessions.map { async { it.generate(PROMPT, greedy).toList().joinToString("") } }.awaitAll()
            }
            assertEquals(List(3) { alone }, texts)
            sessions.forEach(Session::close)
        }
    }

    @Test
    fun sessionsForkAndRewind() = test {
        model.session().use { session ->
            val logits = session.prefill(model.tokenize(PROMPT))
            session.fork().use { fork ->
                fork.append("more")
                fork.rewind(session.position)
                assertArrayEquals(logits, fork.logits())
            }
        }
    }

    private fun coroutine(body: suspend () -> Unit) =
        kotlinx.coroutines.CoroutineScope(Dispatchers.Default).launch { body() }

    companion object {
        val DEMO: String = System.getProperty("mote.demo")
        const val PROMPT = "import os\n\n\ndef "
        private val model = runBlocking { Model.open(DEMO) }

        @AfterAll
        @JvmStatic
        fun close() = model.close()
    }
}
