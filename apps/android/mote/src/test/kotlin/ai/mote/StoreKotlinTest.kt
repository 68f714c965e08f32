package ai.mote

import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir
import java.io.File
import java.nio.file.Path
import kotlin.test.assertFailsWith

class StoreKotlinTest {
    @TempDir
    lateinit var folder: Path

    private val content = File(KotlinTest.DEMO).readBytes()

    @Test
    fun downloadsAndOpens() = runBlocking<Unit> {
        FaultyServer(content).use { server ->
            ModelStore(folder.toString()).use { store ->
                server.faults.add(FaultyServer.Fault.CUT)
                val seen = mutableListOf<Long>()
                val path = store.get(server.url()) { seen.add(it.bytes) }
                assertArrayEquals(content, File(path).readBytes())
                assertEquals(content.size.toLong(), seen.last())
                Model.open(store.find("127.0.0.1/file")).use { assertTrue(it.info.hasTokenizer) }
                assertEquals(1, store.list().size)
                assertEquals(content.size.toLong(), store.remove("127.0.0.1/file"))
                assertFailsWith<StateException> { store.get(server.url(), isMetered = { true }) }
                assertTrue(store.evict(0).isEmpty())
            }
        }
    }

    @Test
    fun cancellingACoroutineKeepsWhatCame() = runBlocking<Unit> {
        FaultyServer(content).use { server ->
            ModelStore(folder.toString()).use { store ->
                server.faults.add(FaultyServer.Fault.STALLED)
                var bytes = 0L
                val job = launch { store.download(server.url()).collect { bytes = it.bytes } }
                while (bytes < 100_000) kotlinx.coroutines.delay(10)
                job.cancelAndJoin()
                store.get(server.url())
                assertTrue(server.ranges.last().startsWith("bytes="))
                assertTrue(store.download(server.url()).first { it.isDone }.isNew.not())
            }
        }
    }
}
