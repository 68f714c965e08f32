package ai.mote.chat

import ai.mote.Model
import ai.mote.MoteException
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir
import java.io.File
import kotlin.test.assertFailsWith

class ModelsTest {
    @TempDir
    lateinit var folder: File
    private val demo = File(System.getProperty("mote.demo"))

    @Test
    fun aPickedFileIsCopied(): Unit = runBlocking {
        val library = ModelLibrary(folder)
        var told = 0L
        val first = demo.inputStream().use { library.add("../my demo.mote", it) { sum -> told = sum } }
        val second = demo.inputStream().use { library.add("_my demo.mote", it) }
        assertEquals(demo.length(), told)
        assertEquals(listOf("_my demo", "_my demo 2"), listOf(first, second).map { it.name })
        assertEquals(listOf(first, second), library.list())
        library.remove(first)
        assertEquals(listOf(second), library.list())
    }

    @Test
    fun whatIsNoModelLeavesNothingBehind(): Unit = runBlocking {
        val error = assertFailsWith<MoteException> { ModelLibrary(folder).add("x.mote", "hello".byteInputStream()) }
        assertTrue(error.message!!.isNotEmpty())
        assertEquals(emptyList<String>(), folder.list()!!.toList())
    }

    @Test
    fun measures(): Unit = runBlocking {
        Model.open(demo.path).use { model ->
            val result = Benchmark(model).run(promptTokens = 32, newTokens = 16)
            assertTrue(result.prefillSpeed > 0 && result.decodeSpeed > 0 && result.firstTokenMilliseconds > 0)
            assertTrue(result.privateBytes > 0)
            var seconds = 0.0
            val points = Benchmark(model) { seconds.also { seconds += 0.5 } }.sustained(seconds = 0.2, pointEvery = 2.0).toList()
            assertTrue(points.isNotEmpty())
            assertEquals(2.0, points.first().tokensPerSecond, 1e-9)
            assertEquals(listOf(2.0, 4.0).take(points.size), points.take(2).map { it.seconds })
        }
    }

    @Test
    fun tellsWhatRunsTheModelAndWhy(): Unit = runBlocking {
        val without = deviceFacts(null).map { it.label }
        assertTrue(without.containsAll(listOf("CPU", "CPU features", "Mote")))
        Model.open(demo.path).use { model ->
            val facts = deviceFacts(model)
            assertEquals("cpu", facts.single { it.label == "Runs on" }.value)
            assertEquals("works here", facts.single { it.label == "Target cpu" }.value)
            assertTrue(facts.any { it.label.startsWith("linear") || it.value.contains("int8") }, facts.toString())
        }
    }
}
