package ai.mote

import ai.mote.blocking.Adapter
import ai.mote.blocking.Batch
import ai.mote.blocking.Grammar
import java.nio.ByteBuffer
import ai.mote.blocking.Model as BlockingModel

/** A model file, opened. May be used by any number of coroutines; what was opened with it may outlive it. */
public class Model internal constructor(
    /** The same model, for callers that may block. */
    public val blocking: BlockingModel,
) : AutoCloseable {
    public val info: ModelInfo get() = blocking.info()

    /** Everything that `mote inspect` prints, as a JSON object. */
    public fun describe(): String = blocking.describe()

    /** options: those of a session */
    public suspend fun session(options: Options = Options.NONE): Session = Session(opened { blocking.session(options) })

    /** A conversation in a session of its own. instructions: the system message */
    public suspend fun chat(
        instructions: String? = null,
        tools: List<Tool> = emptyList(),
        options: Options = Options.NONE,
    ): Chat {
        val json = if (tools.isEmpty()) null else tools.joinToString(",", "[", "]") { it.json }
        return Chat(opened { blocking.chat(instructions, json, options) })
    }

    public fun tokenize(text: String, addSpecial: Boolean = true, parseSpecial: Boolean = true): IntArray =
        blocking.tokenize(text, addSpecial, parseSpecial)

    public fun detokenize(ids: IntArray, skipSpecial: Boolean = true): String = blocking.detokenize(ids, skipSpecial)

    /** What generated text is to follow. Errors: [ArgumentException] with the place in the source */
    public suspend fun grammar(syntax: Syntax, source: String): Grammar =
        opened { isCancelled -> blocking.grammar(syntax, source, isCancelled) }

    public suspend fun adapter(path: String): Adapter = opened { blocking.adapter(path) }

    /** Sessions that join it decode together. maxSequences: that are computed at the same time, 0: 16 */
    public suspend fun batch(maxSequences: Int = 0, options: Options = Options.NONE): Batch =
        opened { blocking.batch(maxSequences, options) }

    public suspend fun embedder(options: Options = Options.NONE): Embedder = Embedder(opened { blocking.embedder(options) })

    /** Gives the memory of the mapped file back to the system, which reads pages again when a call needs them. */
    public fun releasePages(): Unit = blocking.releasePages()

    override fun close(): Unit = blocking.close()

    public companion object {
        /**
         * options: those of a model   onProgress: told 0..1 by the thread that opens
         * Errors: [FileException], [ProgramException], [ArgumentException]
         */
        public suspend fun open(
            path: String,
            options: Options = Options.NONE,
            onProgress: (Double) -> Unit = {},
        ): Model = openedModel(onProgress) { BlockingModel.open(path, options, it) }

        /** A part of an open file, such as an asset of a package. length: -1: to the end */
        public suspend fun open(
            descriptor: Int,
            offset: Long = 0,
            length: Long = -1,
            options: Options = Options.NONE,
            onProgress: (Double) -> Unit = {},
        ): Model = openedModel(onProgress) { BlockingModel.open(descriptor, offset, length, options, it) }

        /** The bytes of a direct buffer, which must not change while the model is in use. */
        public suspend fun open(
            bytes: ByteBuffer,
            options: Options = Options.NONE,
            onProgress: (Double) -> Unit = {},
        ): Model = openedModel(onProgress) { BlockingModel.open(bytes, options, it) }
    }
}
