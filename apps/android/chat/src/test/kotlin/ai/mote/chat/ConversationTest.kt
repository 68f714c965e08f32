package ai.mote.chat

import ai.mote.Model
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import org.junit.jupiter.api.AfterAll
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNotEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir
import java.io.File

class ConversationTest {
    @TempDir
    lateinit var folder: File
    private val store by lazy { ChatStore(File(folder, "chats")) }
    private val scope = CoroutineScope(SupervisorJob() + Dispatchers.Default)
    private val short = ChatSettings("Be brief.", mapOf("max_new_tokens" to "12", "temperature" to "0"))

    /** A reply of many seconds. */
    private val slow = ChatSettings(values = mapOf("pace" to "2", "seed" to "1"))

    private fun test(body: suspend () -> Unit) = runBlocking { withTimeout(60_000) { body() } }

    private suspend fun open(settings: ChatSettings = short) = open(store.create("demo.mote", settings))

    private suspend fun open(saved: SavedChat) = Conversation.open(model, store, saved, scope)

    private fun Conversation.roles() = state.value.messages.map { it.role }

    @Test
    fun aReplyIsStreamedAndKept() = test {
        open().use { chat ->
            val drafts = mutableListOf<String>()
            val watcher = scope.launch { chat.state.collect { state -> state.draft?.let { drafts.add(it.text) } } }
            chat.send("Hello")
            chat.idle()
            watcher.cancel()
            assertEquals(listOf(Role.USER, Role.ASSISTANT), chat.roles())
            val state = chat.state.value
            assertFalse(state.isWriting)
            assertNull(state.error)
            assertEquals("Hello", state.title)
            assertEquals(12, state.statistics!!.generation.generatedTokens)
            assertTrue(drafts.all { state.messages.last().text.startsWith(it.trim()) })
        }
    }

    @Test
    fun aHotDeviceHoldsTheNextReply() = test {
        val asked = mutableListOf<Double>()
        val hot = object : Device {
            override fun pace(tokensPerSecond: Double) = 40.0.also { asked.add(tokensPerSecond) }
        }
        Conversation.open(model, store, store.create("demo.mote", short), scope, hot).use { chat ->
            fun speed() = chat.state.value.statistics!!.generation.let { (it.generatedTokens - 1) / it.decodeSeconds }
            chat.send("Hello")
            chat.idle()
            assertTrue(asked.isEmpty(), "nothing is known of its speed")
            val free = speed()
            assertTrue(free > 50, "$free")
            repeat(2) {
                chat.send("And now?")
                chat.idle()
                assertTrue(speed() < 45, "${speed()}")
            }
            assertEquals(listOf(free, free), asked, "the speed of a reply that was held says nothing")
            chat.change(short.copy(values = short.values + ("pace" to "1000")))
            chat.send("And now?")
            chat.idle()
            assertEquals(2, asked.size, "the user's own comes first")
        }
    }

    @Test
    fun theDeviceIsToldHowLongTokensTake() = test {
        val device = WatchingDevice()
        Conversation.open(model, store, store.create("demo.mote", short), scope, device).use { chat ->
            chat.send("Hello")
            chat.idle()
            assertTrue(device.expected.isEmpty(), "nothing is known of its speed")
            val speed = chat.state.value.statistics!!.generation.let { (it.generatedTokens - 1) / it.decodeSeconds }
            chat.send("And now?")
            chat.idle()
            chat.change(short.copy(values = short.values + ("pace" to "50")))
            chat.send("And now?")
            chat.idle()
            assertEquals(listOf(speed, 50.0), device.expected)
            assertEquals(2, device.numClosed)
            val held = device.reported.last()
            assertTrue(held.size in 2..12 && held.average() > 15e6, "$held: a token each 20 ms")
            chat.send("And now?")
            chat.stop()
            chat.idle()
            assertEquals(device.expected.size, device.numClosed)
        }
    }

    @Test
    fun timesAreOfTokensNotOfEvents() {
        val found = mutableListOf<Long>()
        var position = 10L
        var time = 0L
        val times = TokenTimes({ position }, { found += it }, { time })
        for ((reached, at) in listOf(10L to 0L, 11L to 30L, 11L to 35L, 13L to 70L, 4L to 80L, 5L to 90L)) {
            position = reached
            time = at
            times.mark()
        }
        assertEquals(listOf(30L, 20L, 10L), found)
    }

    @Test
    fun survivesARestartWithItsSession() = test {
        val id = open().use { chat ->
            chat.send("Hello")
            chat.idle()
            chat.persist()
            chat.id
        }
        val saved = store.list().single()
        assertEquals(id, saved.id)
        assertEquals("Hello", saved.title)
        assertEquals(short, saved.settings)
        open(saved).use { chat ->
            assertEquals(2, chat.state.value.messages.size)
            chat.send("And now?")
            chat.idle()
            assertEquals(4, chat.state.value.messages.size)
            assertTrue(chat.state.value.statistics!!.keptTokens > 12, "the session was restored")
        }
    }

    @Test
    fun aSessionThatCannotBeReadIsComputedAgain() = test {
        val saved = open().use { chat ->
            chat.send("Hello")
            chat.idle()
            store.list().single()
        }
        store.sessionFile(saved.id).writeText("not a session")
        open(saved).use { chat ->
            chat.send("And now?")
            chat.idle()
            assertEquals(4, chat.state.value.messages.size)
        }
        assertFalse(store.sessionFile(saved.id).exists())
    }

    @Test
    fun whatWasWrittenBeforeAStopStays() = test {
        open(slow).use { chat ->
            chat.send("Hello")
            chat.state.first { !it.draft?.text.isNullOrBlank() }
            chat.stop()
            chat.idle()
            assertEquals(listOf(Role.USER, Role.ASSISTANT), chat.roles())
            assertTrue(chat.state.value.messages.last().text.isNotBlank())
            chat.stop()
            assertFalse(chat.state.value.isWriting)
        }
    }

    @Test
    fun oneTurnAtATime() = test {
        open(slow).use { chat ->
            chat.send("Hello")
            chat.state.first { !it.draft?.text.isNullOrBlank() }  // a reply without text would not stay
            chat.send("Again")
            chat.regenerate()
            chat.change(short)
            chat.stop()
            chat.idle()
            assertEquals("Hello", chat.state.value.messages.first().text)
            assertEquals(2, chat.state.value.messages.size)
            assertEquals(slow, chat.settings)
        }
    }

    @Test
    fun regeneratesAndEdits() = test {
        open().use { chat ->
            chat.send("Hello")
            chat.idle()
            val reply = chat.state.value.messages.last()
            chat.regenerate()
            chat.idle()
            assertEquals(reply, chat.state.value.messages.last(), "the likeliest tokens are the same")
            chat.send("More")
            chat.idle()
            chat.edit(0, "Goodbye")
            chat.idle()
            assertEquals(listOf("Goodbye"), chat.state.value.messages.filter { it.role == Role.USER }.map { it.text })
            assertEquals(2, chat.state.value.messages.size)
        }
    }

    @Test
    fun otherInstructionsLeaveTheMessages() = test {
        open().use { chat ->
            chat.send("Hello")
            chat.idle()
            chat.change(short.copy(instructions = "Be long."))
            chat.send("More")
            chat.idle()
            assertEquals(4, chat.state.value.messages.size)
            assertEquals("Be long.", store.list().single().settings.instructions)
            assertTrue(store.messages(chat.id)!!.contains("Be long."))
            assertFalse(store.messages(chat.id)!!.contains("Be brief."))
            chat.change(short.copy(instructions = ""))
            assertEquals(4, chat.state.value.messages.size)
        }
    }

    @Test
    fun attachedTextsGoWithTheNextMessage() = test {
        open().use { chat ->
            chat.attach("a.py", "x = 1\n")
            chat.attach("b.py", "y = 2")
            chat.detach(1)
            chat.send("What is it?")
            chat.idle()
            assertEquals("File \"a.py\":\n```\nx = 1\n```\n\nWhat is it?", chat.state.value.messages.first().text)
            assertTrue(chat.state.value.attachments.isEmpty())
            assertTrue(chat.export().contains("**user**\n\nFile \"a.py\""))
        }
    }

    @Test
    fun whatIsRefusedIsSaidAndTheMessageTakenBack() = test {
        open(short.copy(values = mapOf("top_p" to "2"))).use { chat ->
            chat.attach("a.py", "x = 1\n")
            chat.send("Hello")
            chat.idle()
            val state = chat.state.value
            assertEquals("top_p = 2: must be a number, 0..1 (1: off)", state.error)
            assertTrue(state.messages.isEmpty())
            assertEquals(1, state.attachments.size)
            chat.change(short)
            chat.send("Hello")
            chat.idle()
            assertNull(chat.state.value.error)
        }
        open().use { chat ->
            chat.send("Hello ".repeat(5000))
            chat.idle()
            assertTrue(chat.state.value.error!!.contains("context"), chat.state.value.error)
        }
    }

    @Test
    fun closingEndsWhatRuns() = test {
        val chat = open(slow)
        chat.send("Hello")
        chat.state.first { it.isWriting }
        chat.close()
        chat.idle()
        assertNotEquals(null, store.messages(chat.id))
    }

    @Test
    fun theListLeavesOutWhatCannotBeRead() = test {
        store.save(store.create("m"), "[]")
        File(folder, "chats/x").mkdirs()
        File(folder, "chats/x/chat.json").writeText("{")
        val saved = store.list().single()
        store.delete(saved.id)
        assertTrue(store.list().isEmpty())
        assertNull(store.messages(saved.id))
    }

    companion object {
        private val model by lazy { runBlocking { Model.open(System.getProperty("mote.demo")) } }

        @AfterAll
        @JvmStatic
        fun close() = model.close()
    }
}

private class WatchingDevice : Device {
    val expected = mutableListOf<Double>()
    val reported = mutableListOf<MutableList<Long>>()
    var numClosed = 0

    override fun hints(tokensPerSecond: Double): Hints {
        expected += tokensPerSecond
        val times = mutableListOf<Long>().also { reported += it }
        return object : Hints {
            override fun report(nanoseconds: Long) {
                times += nanoseconds
            }

            override fun close() {
                numClosed++
            }
        }
    }
}
