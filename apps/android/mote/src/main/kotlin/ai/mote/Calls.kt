package ai.mote

import ai.mote.blocking.Handle
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.FlowCollector
import kotlinx.coroutines.flow.buffer
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.flowOn
import kotlinx.coroutines.job
import kotlinx.coroutines.launch
import kotlinx.coroutines.withContext
import ai.mote.blocking.Model as BlockingModel

/**
 * Runs a blocking call off the caller's thread. Where the coroutine is cancelled meanwhile, `cancel` comes at once.
 * forget: takes a cancel back that came too late for the call
 */
internal suspend fun <T> call(cancel: () -> Unit, forget: () -> Unit = {}, block: () -> T): T =
    withContext(Dispatchers.IO) { cancelling(cancel, forget) { block() } }

/** The same for what gives a handle, which is closed if nobody takes it. */
internal suspend fun <T : Handle> opened(
    cancel: () -> Unit = {},
    forget: () -> Unit = {},
    block: (CancelCheck) -> T,
): T {
    var handle: T? = null
    try {
        return withContext(Dispatchers.IO) {
            val job = coroutineContext.job
            cancelling(cancel, forget) { block { !job.isActive }.also { handle = it } }
        }
    } catch (error: Throwable) {
        handle?.close()
        throw error
    }
}

/** The same for a model. onProgress: told 0..1 by the thread that opens */
internal suspend fun openedModel(onProgress: (Double) -> Unit, open: (ProgressListener) -> BlockingModel): Model {
    val job = currentCoroutineContext().job
    val listener = ProgressListener { fraction ->
        onProgress(fraction)
        job.isActive
    }
    return Model(opened { open(listener) })
}

/** Steps that a slow collector may be behind, so that a fast one costs no change of threads a step. */
private const val STEPS_AHEAD = 16

/** A flow of what a handle gives step by step. */
internal fun <H : Handle, T> steps(
    open: (CancelCheck) -> H,
    cancel: (H) -> Unit,
    run: suspend FlowCollector<T>.(H) -> Unit,
): Flow<T> = flow {
    val job = currentCoroutineContext().job
    cancelling({}) { open { !job.isActive } }.use { handle ->
        cancelling({ cancel(handle) }) { run(handle) }
    }
}.buffer(STEPS_AHEAD).flowOn(Dispatchers.IO)

/** Calls `cancel` if the coroutine is cancelled while `block` runs, never after it. */
private suspend fun <T> cancelling(
    cancel: () -> Unit,
    forget: () -> Unit = {},
    block: suspend CoroutineScope.() -> T,
): T = coroutineScope {
    val watch = Watch(cancel, forget)
    val watcher = launch(Dispatchers.Unconfined, CoroutineStart.UNDISPATCHED) {
        try {
            awaitCancellation()
        } finally {
            watch.cancel()
        }
    }
    try {
        block()
    } catch (error: CancelledException) {
        ensureActive() // a cancelled coroutine ends as such
        throw error
    } finally {
        watch.end()
        watcher.cancel()
    }
}

private class Watch(private val cancelCall: () -> Unit, private val forgetCancel: () -> Unit) {
    private var isOver = false
    private var wasCancelled = false

    @Synchronized
    fun cancel() {
        if (isOver) return
        wasCancelled = true
        unlessClosed(cancelCall)
    }

    @Synchronized
    fun end() {
        isOver = true
        if (wasCancelled) unlessClosed(forgetCancel)
    }

    private fun unlessClosed(act: () -> Unit) {
        try {
            act()
        } catch (_: IllegalStateException) {
            // Closing has ended the call.
        }
    }
}
