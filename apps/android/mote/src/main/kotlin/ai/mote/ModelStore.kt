package ai.mote

import ai.mote.blocking.Download
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.last
import kotlinx.coroutines.flow.onEach
import kotlinx.coroutines.withContext
import ai.mote.blocking.ModelStore as BlockingModelStore

/** The models of a user: a folder of files with names. May be used by any number of coroutines and processes. */
public class ModelStore private constructor(
    /** The same store, for callers that may block. */
    public val blocking: BlockingModelStore,
) : AutoCloseable {
    /**
     * root: the folder, which need not exist, on Android below `Context.noBackupFilesDir`; null: that of MOTE_HOME, or
     * the user's folder of caches
     */
    public constructor(root: String? = null) : this(BlockingModelStore(root))

    /** Those of a name, parts included, without a tag all of the model; of null all that there are. */
    public suspend fun list(name: String? = null): List<StoredModel> =
        withContext(Dispatchers.IO) { blocking.list(name).asList() }

    /**
     * The file of a name, for [Model.open]; it is noted as used now. No network is needed.
     * Errors: [FileException] if it has to be downloaded, [ArgumentException] naming the files if there are several
     */
    public suspend fun find(name: String): String = withContext(Dispatchers.IO) { blocking.find(name) }

    /** Deletes the files of a name, parts too, and returns how many bytes that freed. */
    public suspend fun remove(name: String): Long = withContext(Dispatchers.IO) { blocking.remove(name) }

    /** Deletes files, those first that were used longest ago, until all take at most so many bytes. What is open or downloaded stays. */
    public suspend fun evict(maxBytes: Long): List<StoredModel> =
        withContext(Dispatchers.IO) { blocking.evict(maxBytes).asList() }

    /**
     * Downloads a file as it is collected, or goes on with what an earlier download has left. Where the collecting is
     * cancelled, what has come stays.
     *
     * what: a name of the hub, or the URL of a .mote file   isMetered: asked often whether the network is metered now
     * Errors: [FileException] where it cannot be had, arrived damaged or has no room, [StateException] on a metered
     * network, and those of [Model.open] for a file that this device cannot run
     */
    public fun download(
        what: String,
        options: DownloadOptions = DownloadOptions.NONE,
        isMetered: () -> Boolean = { false },
    ): Flow<DownloadProgress> = steps({ blocking.begin(what, options) }, Download::cancel) { download ->
        do {
            download.setMetered(isMetered())
            val progress = download.next()
            emit(progress)
        } while (!progress.isDone)
    }

    /** Downloads a file and returns its path, for [Model.open]. */
    public suspend fun get(
        what: String,
        options: DownloadOptions = DownloadOptions.NONE,
        isMetered: () -> Boolean = { false },
        onProgress: (DownloadProgress) -> Unit = {},
    ): String = download(what, options, isMetered).onEach(onProgress).last().path

    override fun close(): Unit = blocking.close()
}
