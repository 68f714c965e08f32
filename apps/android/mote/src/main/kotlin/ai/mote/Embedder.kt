package ai.mote

import ai.mote.blocking.Embedder as BlockingEmbedder

/** Texts to vectors. Takes one call at a time. */
public class Embedder internal constructor(
    /** The same embedder, for callers that may block. */
    public val blocking: BlockingEmbedder,
) : AutoCloseable {
    /** A vector a text; they are computed together, and none depends on the others. */
    public suspend fun embed(texts: List<String>, options: EmbedOptions = EmbedOptions.NONE): List<FloatArray> =
        call(blocking::cancel) { blocking.embed(texts.toTypedArray(), options).asList() }

    public suspend fun embed(text: String, options: EmbedOptions = EmbedOptions.NONE): FloatArray =
        embed(listOf(text), options).single()

    override fun close(): Unit = blocking.close()
}
