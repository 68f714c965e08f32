package ai.mote

import kotlinx.coroutines.runBlocking
import kotlinx.serialization.Serializable
import kotlinx.serialization.json.Json
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import java.io.File
import kotlin.test.assertFailsWith

@Serializable
private class Vector(val text: String, val vector: FloatArray)

@Serializable
private class Adapted(val text: String, val logits: FloatArray)

/** The numbers are those of Python's runner: tests/jvm_files.py. */
class FilesTest {
    private val folder = File(System.getProperty("mote.files"))

    @Test
    fun vectorsAreThoseOfPython() = runBlocking<Unit> {
        val expected = Json.decodeFromString<Vector>(folder.resolve("vector.json").readText())
        Model.open(folder.resolve("embedder.mote").path).use { model ->
            assertTrue(model.info.embeds)
            assertTrue(model.blocking.embeddingConfig().contains("query"))
            model.embedder().use { embedder ->
                val options = EmbedOptions.NONE.withPromptName("query")
                val (first, second) = embedder.embed(listOf(expected.text, "other"), options)
                assertArrayEquals(expected.vector, first)
                assertFalse(first.contentEquals(second))
                assertEquals(8, embedder.embed("x", options.withDimensions(8)).size)
                assertEquals(expected.vector.size, embedder.blocking.dimensions(EmbedOptions.NONE))
                assertFailsWith<ArgumentException> { embedder.embed("x", options.withPromptName("none")) }
                val long = "x ".repeat(1000)
                embedder.embed(long)
                assertFailsWith<ContextFullException> { embedder.embed(long, options.refusingLong()) }
                assertEquals(0, embedder.embed(emptyList()).size)
                assertTrue(embedder.blocking.checkGolden().contains("passed"))
                embedder.blocking.cancel()
                assertFailsWith<CancelledException> { embedder.embed("x") }
                embedder.close()
                assertFailsWith<IllegalStateException> { embedder.embed("x") }
            }
        }
    }

    @Test
    fun adaptersComputeWhatTheyDoInPython() = runBlocking<Unit> {
        val expected = Json.decodeFromString<Adapted>(folder.resolve("adapted.json").readText())
        Model.open(KotlinTest.DEMO).use { model ->
            val ids = model.tokenize(expected.text)
            val adapter = model.adapter(folder.resolve("tone.mote-adapter").path)
            assertTrue(adapter.describe().contains("tone"))
            model.session().use { session ->
                val alone = session.prefill(ids)
                session.reset()
                session.setAdapters(mapOf(adapter to 0.5f))
                adapter.close()
                assertArrayEquals(expected.logits, session.prefill(ids))
                session.setAdapters(emptyMap())
                assertArrayEquals(alone, session.logits())
                assertFailsWith<IllegalStateException> { session.setAdapters(mapOf(adapter to 1f)) }
            }
        }
    }
}
