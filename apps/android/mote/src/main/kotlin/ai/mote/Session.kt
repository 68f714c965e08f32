package ai.mote

import ai.mote.blocking.Adapter
import ai.mote.blocking.Batch
import ai.mote.blocking.Beams
import ai.mote.blocking.Generation
import kotlinx.coroutines.flow.Flow
import ai.mote.blocking.Session as BlockingSession

/**
 * One text that a model reads and goes on with. Takes one call at a time: another one meanwhile is a [StateException].
 * Cancelling a coroutine ends its call within an instruction of the model; the session keeps what it had read.
 */
public class Session internal constructor(
    /** The same session, for callers that may block. */
    public val blocking: BlockingSession,
) : AutoCloseable {
    public val info: SessionInfo get() = blocking.info()
    public val position: Long get() = blocking.position()
    public val tokens: IntArray get() = blocking.tokens()

    /** The file's target that computes, such as "cpu". */
    public val backend: String get() = blocking.backend()

    /** Why the session left another target by itself; "": it did not. */
    public val movedBecause: String get() = blocking.movedBecause()

    /**
     * What the model writes after a prompt, whole characters at a time; where the session has tokens, it goes on from
     * them. The flow is cold: the text begins when it is collected, and is at most 16 tokens ahead of who collects it.
     * onDone: told at the end, unless it is cancelled
     */
    public fun generate(
        prompt: String,
        options: Options = Options.NONE,
        onDone: (Statistics) -> Unit = {},
    ): Flow<String> = generation({ blocking.generation(prompt, options) }, onDone) { it.text.ifEmpty { null } }

    /** The same token by token, after ids. No ids: goes on from what the session has. */
    public fun pieces(
        ids: IntArray,
        options: Options = Options.NONE,
        onDone: (Statistics) -> Unit = {},
    ): Flow<Piece> = generation({ blocking.generation(ids, options) }, onDone) { it }

    private fun <T : Any> generation(
        open: () -> Generation,
        onDone: (Statistics) -> Unit,
        take: (Piece) -> T?,
    ): Flow<T> = steps({ open() }, Generation::cancel) { generation ->
        do {
            val piece = generation.next()
            take(piece)?.let { emit(it) }
        } while (!piece.isLast)
        onDone(generation.statistics())
    }

    public suspend fun append(text: String): Unit = calling { blocking.append(text) }

    public suspend fun append(ids: IntArray): Unit = calling { blocking.append(ids) }

    /** Makes ids the session's tokens. Returns how many of them it had. */
    public suspend fun setTokens(ids: IntArray): Long = calling { blocking.setTokens(ids) }

    /** Reads ids and gives the logits after the last one. */
    public suspend fun prefill(ids: IntArray): FloatArray = calling { blocking.prefill(ids) }

    public suspend fun decode(id: Int): FloatArray = calling { blocking.decode(id) }

    /** After the last token. */
    public suspend fun logits(): FloatArray = calling { blocking.logits() }

    /** Reads ids and gives the logits after each, one row after another. */
    public suspend fun verify(ids: IntArray): FloatArray = calling { blocking.verify(ids) }

    /** Reads ids and gives the logarithm of the probability of each but the first. */
    public suspend fun score(ids: IntArray): FloatArray = calling { blocking.score(ids) }

    public suspend fun beamSearch(ids: IntArray, options: Options = Options.NONE): Beams =
        opened(blocking::cancel, blocking::forgetCancel) { blocking.beamSearch(ids, options) }

    public suspend fun reset(): Unit = calling { blocking.reset() }

    /** Goes back to the first tokens. */
    public suspend fun rewind(position: Long): Unit = calling { blocking.rewind(position) }

    /** Goes on with another of the file's targets, such as "cpu", and keeps its tokens. */
    public suspend fun moveTo(backend: String): Unit = calling { blocking.moveTo(backend) }

    /** A session of its own with the same options and tokens; what they have in common is one memory. */
    public suspend fun fork(): Session = Session(opened { blocking.fork() })

    /** Writes tokens and caches to a file, whole or not at all. */
    public suspend fun save(path: String): Unit = calling { blocking.save(path) }

    /** Goes on from a file of the same model; an error changes nothing. */
    public suspend fun restore(path: String): Unit = calling { blocking.restore(path) }

    /** A smaller model that proposes tokens; null: none. */
    public suspend fun setDraftModel(draft: Model?): Unit = calling { blocking.setDraftModel(draft?.blocking) }

    /** Computes from now on with adapters, each multiplied by its weight; none: the model alone. */
    public suspend fun setAdapters(adapters: Map<Adapter, Float>): Unit =
        calling { blocking.setAdapters(adapters.keys.toTypedArray(), adapters.values.toFloatArray()) }

    /** Texts of the session decode together with others of the batch from now on; null: alone again. */
    public suspend fun join(batch: Batch?): Unit = calling { blocking.setBatch(batch) }

    override fun close(): Unit = blocking.close()

    private suspend fun <T> calling(block: () -> T): T = call(blocking::cancel, blocking::forgetCancel, block)
}
