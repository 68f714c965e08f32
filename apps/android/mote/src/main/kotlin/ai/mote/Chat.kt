package ai.mote

import ai.mote.blocking.ChatTurn
import ai.mote.blocking.ToolCallReader
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.FlowCollector
import ai.mote.blocking.Chat as BlockingChat

/** What a reply adds while it is written. */
public sealed class ChatEvent {
    public data class Content(public val text: String) : ChatEvent()

    public data class Reasoning(public val text: String) : ChatEvent()

    /** A call of a tool, whole. Its result is [Chat.answer]ed, and [Chat.reply] goes on. */
    public data class Call(public val call: ToolCall) : ChatEvent()

    /** The last event, unless the reply is cancelled. */
    public data class Done(public val statistics: ChatStatistics) : ChatEvent() {
        public val finishReason: FinishReason? get() = statistics.generation.finishReason
    }
}

/**
 * A conversation. Flows are cold: a reply begins when one is collected, and one is collected at a time. What was written
 * of a reply, also of one that is cancelled or fails, is the conversation's.
 */
public class Chat internal constructor(
    /** The same chat, for callers that may block. */
    public val blocking: BlockingChat,
) : AutoCloseable {
    public val session: Session = Session(blocking.session())

    /** A JSON list of messages of OpenAI's form. */
    public val messages: String get() = blocking.messages()

    /** Sends a message of the user. If no reply begins, the message is taken back. */
    public fun send(text: String, options: Options = Options.NONE): Flow<ChatEvent> = turn { isCancelled ->
        blocking.beginReplyTo(BlockingChat.message("user", text), options, isCancelled)
    }

    /** A reply to the messages as they are. */
    public fun reply(options: Options = Options.NONE): Flow<ChatEvent> = turn { blocking.reply(options, it) }

    /** Another reply in the place of the last one. */
    public fun regenerate(options: Options = Options.NONE): Flow<ChatEvent> = turn { blocking.regenerate(options, it) }

    /** Goes on with a reply that was cut off. */
    public fun continueReply(options: Options = Options.NONE): Flow<ChatEvent> =
        turn { blocking.continueReply(options, it) }

    /** Adds the result of a call. */
    public fun answer(call: ToolCall, result: String): Unit = append(
        JsonText.of(mapOf("role" to "tool", "tool_call_id" to call.id, "name" to call.name, "content" to result)),
    )

    /** Adds a message, a JSON object. */
    public fun append(message: String): Unit = blocking.append(message)

    /** Replaces a message and drops those that followed. */
    public fun edit(index: Int, message: String): Unit = blocking.edit(index, message)

    /** Keeps the first messages. */
    public fun truncate(count: Int): Unit = blocking.truncate(count)

    public fun set(field: BlockingChat.Field, text: String?): Unit = blocking.set(field, text)

    override fun close(): Unit = blocking.close()

    private fun turn(open: (CancelCheck) -> ChatTurn): Flow<ChatEvent> = steps(open, ChatTurn::cancel) { turn ->
        try {
            emitAll(turn)
        } finally {
            turn.takeReply()
        }
    }

    private suspend fun FlowCollector<ChatEvent>.emitAll(turn: ChatTurn) {
        val calls = ToolCallReader()
        do {
            val step = turn.next()
            val call = calls.read(step)
            when (step.kind) {
                ChatStep.Kind.CONTENT -> emit(ChatEvent.Content(step.text))
                ChatStep.Kind.REASONING -> emit(ChatEvent.Reasoning(step.text))
                else -> if (call != null) emit(ChatEvent.Call(call))
            }
        } while (step.kind != ChatStep.Kind.DONE)
        emit(ChatEvent.Done(turn.statistics()))
    }
}
