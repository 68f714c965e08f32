package ai.mote.chat

import ai.mote.FaultyServer
import ai.mote.FaultyServer.Fault
import ai.mote.Model
import ai.mote.ModelStore
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNotNull
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir
import java.io.File
import java.io.IOException

class DownloadsTest {
    @TempDir
    lateinit var folder: File
    private val content = File(System.getProperty("mote.demo")).readBytes()

    @Volatile private var isMetered = false

    /** As a start of the app has it. */
    private fun test(act: suspend CoroutineScope.(Models, FaultyServer) -> Unit): Unit = runBlocking {
        FaultyServer(content).use { server -> start { models -> act(models, server) } }
    }

    private suspend fun CoroutineScope.start(act: suspend CoroutineScope.(Models) -> Unit) {
        val stored = File(folder, "store")
        ModelStore(stored.path).use { store ->
            val models = Models(ModelLibrary(File(folder, "picked")), store, stored, CoroutineScope(Dispatchers.Default)) { isMetered }
            try {
                act(models)
            } finally {
                models.stop()
                models.idle()
            }
        }
    }

    /** Stops a download of which a part has come. */
    private suspend fun stopMidway(models: Models, server: FaultyServer) {
        server.faults.add(Fault.STALLED)
        models.download(server.url())
        models.state.first { (it.transfer?.bytes ?: 0) > 100_000 }
        models.stop()
        models.idle()
    }

    @Test
    fun tellsHowFarADownloadIsAndListsTheModel() = test { models, server ->
        val seen = mutableListOf<Transfer>()
        val watcher = launch(Dispatchers.Unconfined) { models.state.collect { state -> state.transfer?.let(seen::add) } }
        models.download("  ${server.url()}\n")
        models.idle()
        watcher.cancel()
        val state = models.state.value
        assertNull(state.error)
        assertNull(state.transfer)
        assertEquals(Transfer(server.url()), seen.first())
        assertEquals(100, seen.last().percent)
        assertEquals(seen.map { it.bytes }.sorted(), seen.map { it.bytes })
        assertEquals(emptyList<StoppedDownload>(), state.stopped)
        val model = state.models.single()
        assertEquals("127.0.0.1/file:file" to content.size.toLong(), model.name to model.bytes)
        assertEquals(content.size.toLong(), state.storedBytes)
        assertTrue(state.freeBytes > 0)
        Model.open(model.path).use { assertTrue(it.info.hasTokenizer) }
    }

    @Test
    fun whatWasStoppedGoesOnAfterARestart() = test { models, server ->
        stopMidway(models, server)
        assertNull(models.state.value.transfer)
        assertNull(models.state.value.error)
        start { again ->
            again.refresh()
            val stopped = again.state.value.stopped.single()
            assertEquals(server.url(), stopped.reference)
            assertEquals(content.size.toLong(), stopped.totalBytes)
            assertTrue(stopped.bytes in 100_000 until content.size)
            again.download(stopped.reference)
            again.idle()
            assertEquals("bytes=${stopped.bytes}-", server.ranges.last())
            assertEquals(emptyList<StoppedDownload>(), again.state.value.stopped)
            assertEquals(content.size.toLong(), again.state.value.models.single().bytes)
        }
    }

    @Test
    fun whatWasStoppedCanBeDiscarded() = test { models, server ->
        stopMidway(models, server)
        models.discard(models.state.value.stopped.single())
        assertEquals(0, models.state.value.storedBytes)
        assertEquals(emptyList<StoppedDownload>(), models.state.value.stopped)
    }

    @Test
    fun aFileThatThisDeviceCannotRunIsRefusedWithTheReason() = test { models, server ->
        server.file = "This is no model. ".repeat(20_000).toByteArray()
        models.download(server.url())
        models.idle()
        assertTrue(models.state.value.error!!.contains("not a .mote file"), models.state.value.error)
        assertEquals(emptyList<InstalledModel>(), models.state.value.models)
        models.download("no model")
        models.idle()
        assertTrue(models.state.value.error!!.startsWith("'no model': must be org/name"), models.state.value.error)
        models.dismiss()
        assertNull(models.state.value.error)
    }

    @Test
    fun aMeteredNetworkIsAskedFor() = test { models, server ->
        isMetered = true
        models.download(server.url())
        models.idle()
        val question = models.state.value.question!!
        assertTrue(question.sentence.contains("metered"), question.sentence)
        assertNull(models.state.value.error)
        models.dismiss()
        assertNull(models.state.value.question)
        models.download(question.reference, allowMetered = true)
        models.idle()
        assertNull(models.state.value.question)
        assertEquals(content.size.toLong(), models.state.value.models.single().bytes)
    }

    @Test
    fun aNetworkThatBecomesMeteredEndsADownloadWithTheQuestion() = test { models, server ->
        server.faults.add(Fault.CUT)
        val watcher = launch(Dispatchers.Unconfined) {
            models.state.first { (it.transfer?.bytes ?: 0) > 0 }
            isMetered = true
        }
        models.download(server.url())
        models.idle()
        watcher.cancel()
        assertEquals(server.url(), models.state.value.question?.reference)
        assertTrue(models.state.value.stopped.single().bytes > 0)
    }

    @Test
    fun oneFileComesAtATime() = test { models, server ->
        server.faults.add(Fault.STALLED)
        models.download(server.url())
        models.state.first { (it.transfer?.bytes ?: 0) > 0 }
        models.download("org/other")
        models.add("x.mote") { error("nobody reads it") }
        assertEquals(server.url(), models.state.value.transfer?.what)
        models.stop()
        models.idle()
        assertEquals(1, server.ranges.size)
    }

    @Test
    fun pickedFilesStandBesideDownloadsAndAreNotEvicted() = test { models, server ->
        models.add("mine.mote") { content.inputStream() }
        models.idle()
        models.download(server.url())
        models.idle()
        assertEquals(listOf("127.0.0.1/file:file", "mine"), models.state.value.models.map { it.name })
        models.evict(models.state.value.storedBytes)
        assertEquals(2, models.state.value.models.size)
        models.evict(0)
        assertEquals(listOf("mine"), models.state.value.models.map { it.name })
        assertEquals(0, models.state.value.storedBytes)
        models.download(server.url())
        models.idle()
        for (model in models.state.value.models) models.remove(model)
        assertEquals(emptyList<InstalledModel>(), models.state.value.models)
        assertFalse(File(folder, "picked/mine.mote").exists())
    }

    @Test
    fun aPickedFileThatCannotBeReadIsSaid() = test { models, _ ->
        models.add("mine.mote") { throw IOException("its provider is gone") }
        models.idle()
        assertEquals("its provider is gone", models.state.value.error)
        models.add("mine.mote") { "hello".byteInputStream() }
        models.idle()
        assertNotNull(models.state.value.error)
        assertEquals(emptyList<InstalledModel>(), models.state.value.models)
    }
}
