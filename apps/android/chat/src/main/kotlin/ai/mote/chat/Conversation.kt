package ai.mote.chat

import ai.mote.Chat
import ai.mote.ChatEvent
import ai.mote.ChatStatistics
import ai.mote.GenerateOptions
import ai.mote.JsonText
import ai.mote.Model
import ai.mote.MoteException
import ai.mote.Options
import ai.mote.Statistics
import ai.mote.blocking.Chat.Field
import ai.mote.blocking.Chat.message
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Job
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow
import kotlinx.coroutines.flow.update
import kotlinx.coroutines.launch
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withContext
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonObject
import java.io.File
import java.io.IOException

enum class Role { SYSTEM, USER, ASSISTANT, TOOL }

data class ShownMessage(val role: Role, val text: String, val reasoning: String = "")

/** What a screen of a chat shows. */
data class ConversationState(
    val title: String = "",
    /** Without the system prompt. */
    val messages: List<ShownMessage> = emptyList(),
    /** Of the reply that is being written; null: none is. */
    val draft: ShownMessage? = null,
    /** Texts that go with the next message. */
    val attachments: List<Attachment> = emptyList(),
    val statistics: ChatStatistics? = null,
    /** A sentence for the user. */
    val error: String? = null,
) {
    val isWriting: Boolean get() = draft != null
    val canRegenerate: Boolean get() = !isWriting && messages.isNotEmpty()
}

data class Attachment(val name: String, val text: String)

/**
 * A chat that survives the app: its messages and settings are written after each turn, its session when it leaves the
 * screen. Functions may be called by any thread; one of send, regenerate and edit runs at a time, and others meanwhile do nothing.
 */
class Conversation private constructor(
    private val chat: Chat,
    private val store: ChatStore,
    private val saved: SavedChat,
    private val scope: CoroutineScope,
    private val device: Device,
) : AutoCloseable {
    private val _state = MutableStateFlow(ConversationState(saved.title, shown(chat.messages)))
    val state: StateFlow<ConversationState> = _state.asStateFlow()
    val id: String get() = saved.id
    val settings: ChatSettings get() = saved.settings

    /** One turn, or one writing of files, at a time. */
    private val turns = Mutex()

    @Volatile private var turn: Job? = null

    /** Tokens a second of the last reply that nothing held back; 0: not known. */
    @Volatile private var speed = 0.0

    /** Tokens a second that the reply that is written is held to; 0: nothing holds it. */
    @Volatile private var held = 0.0

    fun attach(name: String, text: String): Unit = _state.update { it.copy(attachments = it.attachments + Attachment(name, text)) }

    fun detach(index: Int): Unit =
        _state.update { it.copy(attachments = it.attachments.filterIndexed { i, _ -> i != index }) }

    fun send(text: String) {
        val content = withAttachments(text, _state.value.attachments)
        if (content.isBlank()) return
        begin(ShownMessage(Role.USER, content)) { chat.send(content, options()) }
    }

    /** Another reply in the place of the last one. */
    fun regenerate(): Unit = begin(null) { chat.regenerate(options()) }

    /** Replaces a message of the user and has it answered anew. index: of the messages that are shown */
    fun edit(index: Int, text: String): Unit = begin(null) {
        chat.edit(index + numHidden(), message("user", text))
        _state.update { it.copy(messages = shown(chat.messages)) }
        chat.reply(options())
    }

    /** What was written stays. */
    fun stop() {
        turn?.cancel()
    }

    /** Waits for what runs. */
    suspend fun idle() {
        turn?.join()
    }

    /** Writes the session, so that going on costs no computation; for when the screen goes away. */
    suspend fun persist(): Unit = turns.withLock { chat.session.save(store.sessionFile(saved.id).path) }

    /** The conversation as Markdown. */
    fun export(): String = buildString {
        append("# ").append(_state.value.title).append('\n')
        for (message in _state.value.messages) {
            append("\n**").append(message.role.name.lowercase()).append("**\n\n").append(message.text).append('\n')
        }
    }

    /** From the next reply on. Nothing happens while one is written. */
    fun change(settings: ChatSettings) {
        if (!turns.tryLock()) return
        try {
            val system = listOf(settings.instructions).filter { it.isNotEmpty() }.map { message("system", it) }
            val others = (Json.parseToJsonElement(chat.messages) as JsonArray).drop(numHidden()).map { it.toString() }
            chat.set(Field.MESSAGES, (system + others).joinToString(",", "[", "]"))
            saved.settings = settings
            store.save(saved, chat.messages)
        } finally {
            turns.unlock()
        }
    }

    /** Stops what runs. */
    override fun close() {
        val running = turn ?: return chat.close()
        running.cancel()
        running.invokeOnCompletion { chat.close() }
    }

    /** Those that the user has set, and no faster than the device can go on with. */
    private fun options(): Options {
        val given = saved.settings.options()
        val own = saved.settings.values["pace"]?.toDoubleOrNull()
        val limit = if (own != null || speed == 0.0) 0.0 else device.pace(speed)
        held = own ?: limit
        return if (limit > 0) given.with(GenerateOptions(pace = limit)) else given
    }

    private fun begin(sent: ShownMessage?, reply: () -> Flow<ChatEvent>) {
        if (!turns.tryLock()) return
        turn = scope.launch { run(sent, reply) }.also { job -> job.invokeOnCompletion { turns.unlock() } }
    }

    private suspend fun run(sent: ShownMessage?, reply: () -> Flow<ChatEvent>) {
        val before = _state.value
        var error: String? = null
        try {
            _state.update {
                it.copy(
                    messages = it.messages + listOfNotNull(sent), draft = ShownMessage(Role.ASSISTANT, ""),
                    attachments = emptyList(), error = null,
                )
            }
            collect(reply())
        } catch (stopped: CancellationException) {
            throw stopped
        } catch (problem: MoteException) {
            error = problem.message
        } catch (problem: IllegalArgumentException) {
            error = problem.message
        } finally {
            withContext(NonCancellable) { finish(before, sent, error) }
        }
    }

    /** Tells the device how long tokens take that should come as fast as they are held to, or came before. */
    private suspend fun collect(reply: Flow<ChatEvent>) {
        val expected = if (held > 0) held else speed
        (if (expected > 0) device.hints(expected) else null).use { hints ->
            val times = hints?.let { TokenTimes(chat.session::position, it::report) }
            reply.collect { event ->
                times?.mark()
                if (event is ChatEvent.Done) measure(event.statistics.generation)
                draw(event)
            }
        }
    }

    private fun measure(statistics: Statistics) {
        if (held == 0.0 && statistics.generatedTokens > 1) speed = (statistics.generatedTokens - 1) / statistics.decodeSeconds
    }

    private fun draw(event: ChatEvent): Unit = _state.update { state ->
        val draft = state.draft ?: return@update state
        when (event) {
            is ChatEvent.Content -> state.copy(draft = draft.copy(text = draft.text + event.text))
            is ChatEvent.Reasoning -> state.copy(draft = draft.copy(reasoning = draft.reasoning + event.text))
            is ChatEvent.Done -> state.copy(statistics = event.statistics)
            is ChatEvent.Call -> state
        }
    }

    /** The chat knows what became of the turn: a message that got no reply is not its own any more. */
    private fun finish(before: ConversationState, sent: ShownMessage?, error: String?) {
        val messages = shown(chat.messages)
        val wasTaken = sent == null || messages.size > before.messages.size
        val title = before.title.ifEmpty { titleOf(messages) }
        saved.title = title
        val unsaved = try {
            store.save(saved, chat.messages)
            null
        } catch (problem: IOException) {
            problem.message
        }
        _state.update {
            val attachments = if (wasTaken) it.attachments else before.attachments
            it.copy(title = title, messages = messages, draft = null, attachments = attachments, error = error ?: unsaved)
        }
    }

    private fun numHidden() = if (saved.settings.instructions.isEmpty()) 0 else 1

    companion object {
        /**
         * A new chat, or one that was saved: with its session's file nothing is computed again.
         * Errors: MoteException
         */
        suspend fun open(
            model: Model,
            store: ChatStore,
            saved: SavedChat,
            scope: CoroutineScope,
            device: Device = object : Device {},
        ): Conversation {
            val messages = store.messages(saved.id)
            val chat = model.chat(saved.settings.instructions.ifEmpty { null }.takeIf { messages == null })
            try {
                if (messages != null) chat.set(Field.MESSAGES, messages)
                restore(chat, store.sessionFile(saved.id))
            } catch (error: Throwable) {
                chat.close()
                throw error
            }
            return Conversation(chat, store, saved, scope, device)
        }

        /** A session of another model, or of another version of Mote, is computed again. */
        private suspend fun restore(chat: Chat, file: File) {
            if (!file.exists()) return
            try {
                chat.session.restore(file.path)
            } catch (error: MoteException) {
                file.delete()
            }
        }

        private fun shown(messages: String): List<ShownMessage> =
            (Json.parseToJsonElement(messages) as JsonArray).map { it as JsonObject }.map {
                val role = Role.values().firstOrNull { role -> role.name.equals(it.text("role"), ignoreCase = true) }
                ShownMessage(role ?: Role.TOOL, it.text("content"), it.text("reasoning_content"))
            }.filter { it.role != Role.SYSTEM }

        private fun titleOf(messages: List<ShownMessage>): String =
            messages.firstOrNull()?.text.orEmpty().lineSequence().first().take(60).trim()

        private fun withAttachments(text: String, attachments: List<Attachment>): String =
            attachments.joinToString("") { "File ${JsonText.of(it.name)}:\n```\n${it.text.trimEnd()}\n```\n\n" } + text
    }
}
