package ai.mote.chat

import ai.mote.DownloadOptions
import ai.mote.JsonText
import ai.mote.ModelStore
import ai.mote.MoteException
import ai.mote.StateException
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow
import kotlinx.coroutines.flow.update
import kotlinx.coroutines.launch
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.withContext
import kotlinx.serialization.SerializationException
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import java.io.File
import java.io.IOException
import java.io.InputStream

/** A file on its way here. what: as the user named it   totalBytes: 0: not known yet   waitsFor: empty: for nothing */
data class Transfer(val what: String, val bytes: Long = 0, val totalBytes: Long = 0, val waitsFor: String = "") {
    val percent: Int? get() = if (totalBytes > 0) (100 * bytes / totalBytes).toInt() else null
}

/** What a download that ended early has left. reference: with which it goes on   totalBytes: 0: not known */
data class StoppedDownload(val name: String, val reference: String, val bytes: Long, val totalBytes: Long)

/** A download that would cost: what the library says of it. */
data class MeteredQuestion(val reference: String, val sentence: String)

/** What a screen of the models shows. */
data class ModelsState(
    val models: List<InstalledModel> = emptyList(),
    val stopped: List<StoppedDownload> = emptyList(),
    val transfer: Transfer? = null,
    /** Waits for [Models.download] with the user's leave, or for [Models.dismiss]. */
    val question: MeteredQuestion? = null,
    /** A sentence for the user. */
    val error: String? = null,
    /** Of what was downloaded, whole or in part. */
    val storedBytes: Long = 0,
    val freeBytes: Long = 0,
)

/**
 * The models of this device, picked or downloaded, and what brings more. Functions may be called by any thread; one file
 * comes at a time, and others meanwhile do nothing. Downloads go on where an earlier one, of this process or not, stopped.
 * storeFolder: the folder of the store   isMetered: asked often, by any thread
 */
class Models(
    private val picked: ModelLibrary,
    private val store: ModelStore,
    private val storeFolder: File,
    private val scope: CoroutineScope,
    private val isMetered: () -> Boolean,
) {
    private val _state = MutableStateFlow(ModelsState())
    val state: StateFlow<ModelsState> = _state.asStateFlow()
    private val references = References(File(storeFolder, "references.json"))
    private val transfers = Mutex()

    @Volatile private var running: Job? = null

    /** reference: a name of the hub, or the URL of a .mote file   allowMetered: what the user was asked */
    fun download(reference: String, allowMetered: Boolean = false): Unit = begin(reference.trim()) { what ->
        var path = ""
        try {
            val options = if (allowMetered) DownloadOptions.NONE.allowingMetered() else DownloadOptions.NONE
            store.download(what, options, isMetered).collect {
                if (it.path != path) references.put(it.path, what)
                path = it.path
                show(Transfer(what, it.bytes, maxOf(it.totalBytes, 0), it.waitsFor))
            }
            references.remove(path)
        } catch (refusal: StateException) {
            if (allowMetered || !isMetered()) throw refusal
            _state.update { it.copy(question = MeteredQuestion(what, refusal.message.orEmpty())) }
        }
    }

    /** Copies a file that was picked. */
    fun add(name: String, open: () -> InputStream): Unit = begin(name) { what ->
        open().use { bytes -> picked.add(what, bytes) { show(Transfer(what, it)) } }
    }

    /** What has come of a download stays. */
    fun stop() {
        running?.cancel()
    }

    /** Waits for what runs. */
    suspend fun idle() {
        running?.join()
    }

    /** The question and the error have been seen. */
    fun dismiss(): Unit = _state.update { it.copy(question = null, error = null) }

    suspend fun remove(model: InstalledModel): Unit = changing { if (!picked.remove(model)) store.remove(model.name) }

    /** Deletes what has come. */
    suspend fun discard(download: StoppedDownload): Unit = changing { store.remove(download.name) }

    /** Deletes downloaded models, those first that were used longest ago, until they take at most so many bytes. */
    suspend fun evict(maxBytes: Long): Unit = changing { store.evict(maxBytes) }

    /** Looks at the disk again. */
    suspend fun refresh(): Unit = changing {}

    private fun begin(what: String, bring: suspend (String) -> Unit) {
        if (!transfers.tryLock()) return
        _state.update { it.copy(transfer = Transfer(what), question = null, error = null) }
        running = scope.launch {
            try {
                changing { bring(what) }
            } finally {
                _state.update { it.copy(transfer = null) }
            }
        }.also { job -> job.invokeOnCompletion { transfers.unlock() } }
    }

    private fun show(transfer: Transfer): Unit = _state.update { it.copy(transfer = transfer) }

    /** Says what went wrong, and what is on the disk afterwards. */
    private suspend fun changing(act: suspend () -> Unit) {
        try {
            act()
        } catch (problem: MoteException) {
            fail(problem)
        } catch (problem: IOException) {
            fail(problem)
        } finally {
            withContext(NonCancellable + Dispatchers.IO) { list() }
        }
    }

    private fun fail(problem: Exception): Unit = _state.update { it.copy(error = problem.message ?: problem.toString()) }

    private suspend fun list() {
        val stored = store.list()
        val (whole, parts) = stored.partition { it.isWhole }
        val models = (picked.list() + whole.map { InstalledModel(it.name, it.path, it.bytes) }).sortedBy { it.name }
        val stopped = parts.map {
            StoppedDownload(it.name, references.of(it.path.removeSuffix(".part")) ?: it.name, it.bytes, it.totalBytes)
        }
        val free = generateSequence(storeFolder) { it.parentFile }.first { it.exists() }.usableSpace
        _state.update { it.copy(models = models, stopped = stopped, storedBytes = stored.sumOf { file -> file.bytes }, freeBytes = free) }
    }
}

/** As what the files that are on their way were asked for: the store's name of an URL's file does not lead back to it. */
private class References(private val file: File) {
    fun of(path: String): String? = read()[path]

    fun put(path: String, reference: String): Unit = write(read() + (path to reference))

    fun remove(path: String): Unit = write(read() - path)

    private fun read(): Map<String, String> = try {
        val json = Json.parseToJsonElement(file.readText()) as? JsonObject
        json.orEmpty().mapValues { json!!.text(it.key) }
    } catch (error: IOException) {
        emptyMap()
    } catch (error: SerializationException) {
        emptyMap()
    }

    @Synchronized
    private fun write(references: Map<String, String>) {
        if (references == read()) return
        file.parentFile.mkdirs()
        file.writeText(JsonText.of(references))
    }
}
