package ai.mote

import ai.mote.KotlinTest.Companion.DEMO
import ai.mote.KotlinTest.Companion.PROMPT
import kotlinx.coroutines.flow.onEach
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import org.junit.jupiter.api.AfterAll
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertSame
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir
import java.io.File
import kotlin.test.assertFailsWith
import ai.mote.blocking.Chat as BlockingChat

/** Each is an exception of its own, in the coroutine that waits for the call or collects the flow. */
class BadInputKotlinTest {
    @TempDir
    lateinit var folder: File
    private val greedy = GenerateOptions(temperature = 0.0, maxNewTokens = 8)
    private val endless = GenerateOptions(ignoreEos = true, maxNewTokens = 100_000)

    private fun test(body: suspend () -> Unit) = runBlocking { withTimeout(60_000) { body() } }

    /** Its sentence; it comes on the thread of the caller. */
    private suspend inline fun <reified T : Throwable> refusal(block: suspend () -> Unit): String {
        val caller = Thread.currentThread()
        val error = assertFailsWith<T> { block() }
        assertSame(caller, Thread.currentThread())
        return error.message!!
    }

    @Test
    fun missingFile() = test {
        assertTrue("/nowhere/\u00e9.mote" in refusal<FileException> { Model.open("/nowhere/\u00e9.mote") })
    }

    @Test
    fun notAModel() = test {
        val file = folder.resolve("text.mote").apply { writeText("not a model") }
        refusal<ProgramException> { Model.open(file.path) }
        refusal<FileException> { Model.open(folder.path) }
    }

    @Test
    fun noPermission() = test {
        val file = File(DEMO).copyTo(folder.resolve("secret.mote"))
        file.setReadable(false)
        if (file.canRead()) { // root may read anything
            Model.open(file.path).close()
        } else {
            refusal<FileException> { Model.open(file.path) }
        }
    }

    @Test
    fun tooLittleMemory() = test {
        Model.open(System.getProperty("mote.files") + "/long.mote").use { longest ->
            val all = SessionOptions(contextLength = Int.MAX_VALUE)
            assertTrue("choose a smaller context_length" in refusal<ResourceException> { longest.session(all) })
        }
    }

    @Test
    fun placesThatCannotBeWritten() = test {
        model.session().use { session ->
            session.append(PROMPT)
            refusal<FileException> { session.save(folder.resolve("no/folder").path) }
        }
    }

    @Test
    fun unknownOptionsAndValuesOutOfRange() = test {
        refusal<ArgumentException> { model.session(options("no_such_option" to 1)) }
        refusal<ArgumentException> { model.session(SessionOptions(contextLength = -1)) }
        model.session().use { session ->
            val text = refusal<ArgumentException> { session.generate(PROMPT, GenerateOptions(topP = 2.0)).toList() }
            assertTrue(text.startsWith("top_p = 2"), text)
            refusal<ArgumentException> { session.append(intArrayOf(-1)) }
        }
    }

    @Test
    fun emptyMessages() = test {
        model.chat().use { chat ->
            chat.send("", greedy).toList()
            assertEquals(2, chat.blocking.numMessages(), "a message without text is one")
            chat.set(BlockingChat.Field.MESSAGES, null)
            refusal<StateException> { chat.regenerate(greedy).toList() }
            refusal<ArgumentException> { chat.append("[]") }
            assertEquals("[]", chat.messages)
        }
    }

    @Test
    fun toolsWithInvalidSchemas() = test {
        val invalid = Tool("f", "", mapOf("type" to 7))
        model.chat(tools = listOf(invalid)).use { chat ->
            chat.set(BlockingChat.Field.TOOL_CHOICE, "required")
            refusal<ArgumentException> { chat.send("Hello", greedy).toList() }
            assertEquals("[]", chat.messages)
        }
    }

    @Test
    fun callsAfterClose() = test {
        val other = Model.open(DEMO)
        val session = other.session()
        val chat = other.chat()
        repeat(2) {
            chat.close()
            session.close()
            other.close()
        }
        assertEquals("the model is closed", refusal<IllegalStateException> { other.info })
        refusal<IllegalStateException> { other.session() }
        refusal<IllegalStateException> { session.append(PROMPT) }
        refusal<IllegalStateException> { session.generate(PROMPT).toList() }
        refusal<IllegalStateException> { chat.send("Hello").toList() }
        refusal<IllegalStateException> { chat.messages }
    }

    @Test
    fun closingFromACollector() = test {
        val session = model.session()
        val pieces = session.pieces(model.tokenize(PROMPT), endless).onEach { session.close() }.toList()
        assertEquals(FinishReason.CANCELLED, pieces.last().finishReason)
        refusal<IllegalStateException> { session.tokens }
        val chat = model.chat()
        val events = chat.send("Hello", endless).onEach { chat.close() }.toList()
        assertEquals(FinishReason.CANCELLED, (events.last() as ChatEvent.Done).finishReason)
        refusal<IllegalStateException> { chat.messages }
    }

    companion object {
        private val model = runBlocking { Model.open(DEMO) }

        @AfterAll
        @JvmStatic
        fun close() = model.close()
    }
}
