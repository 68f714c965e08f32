package ai.mote.chat.ui

import ai.mote.Model
import ai.mote.ModelStore
import ai.mote.android.MemoryTrimmer
import ai.mote.android.PerformanceHints
import ai.mote.android.ThermalPace
import ai.mote.chat.ChatStore
import ai.mote.chat.Conversation
import ai.mote.chat.Device
import ai.mote.chat.Hints
import ai.mote.chat.ModelLibrary
import ai.mote.chat.Models
import ai.mote.chat.SavedChat
import android.app.Activity
import android.app.Application
import android.content.Context
import android.content.Intent
import android.net.ConnectivityManager
import android.os.Handler
import android.os.Looper
import android.view.View
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.flow.distinctUntilChanged
import kotlinx.coroutines.flow.filter
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.launch
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withContext
import java.io.File
import kotlin.coroutines.CoroutineContext

/** The thread of the screens. */
object MainThread : CoroutineDispatcher() {
    private val handler = Handler(Looper.getMainLooper())

    override fun isDispatchNeeded(context: CoroutineContext): Boolean = Looper.myLooper() != Looper.getMainLooper()

    override fun dispatch(context: CoroutineContext, block: Runnable) {
        handler.post(block)
    }
}

/** Heat and clocks of this one. */
private class AndroidDevice(private val context: Context) : Device {
    private val thermal = ThermalPace(context)

    override fun pace(tokensPerSecond: Double): Double = thermal.of(tokensPerSecond)

    override fun hints(tokensPerSecond: Double): Hints? {
        val session = PerformanceHints.of(context, tokensPerSecond)
        if (!session.areTaken()) return null
        return object : Hints, AutoCloseable by session {
            override fun report(nanoseconds: Long) = session.report(nanoseconds)
        }
    }
}

/** What outlives screens: one model and one chat at a time, and the files. */
class App : Application() {
    val scope = CoroutineScope(SupervisorJob() + MainThread)
    val chats by lazy { ChatStore(File(filesDir, "chats")) }
    val models by lazy {
        val folder = File(noBackupFilesDir, "models")
        val network = getSystemService(Context.CONNECTIVITY_SERVICE) as ConnectivityManager
        Models(ModelLibrary(File(filesDir, "models")), ModelStore(folder.path), folder, scope, network::isActiveNetworkMetered)
    }
    private val trimmer = MemoryTrimmer()
    private val device by lazy { AndroidDevice(this) }
    private val opening = Mutex()
    private var model: Model? = null
    private var modelPath = ""
    private var conversation: Conversation? = null

    override fun onCreate() {
        super.onCreate()
        registerComponentCallbacks(trimmer)
        scope.launch {
            val state = withContext(Dispatchers.IO) { models }.state // loads the library
            state.map { it.transfer != null }.distinctUntilChanged().filter { it }.collect { serveDownloads() }
        }
    }

    private fun serveDownloads() {
        try {
            startService(Intent(this, DownloadService::class.java))
        } catch (error: IllegalStateException) {
            // The screen has gone meanwhile: the file comes as long as the process is left alone.
        }
    }

    /** Errors: MoteException */
    suspend fun model(path: String): Model = opening.withLock { open(path) }

    /** Errors: MoteException */
    suspend fun conversation(saved: SavedChat): Conversation = opening.withLock {
        val current = conversation
        if (current?.id == saved.id) return@withLock current
        val model = open(saved.model)
        current?.close()
        conversation = null
        Conversation.open(model, chats, saved, scope, device).also { conversation = it }
    }

    private suspend fun open(path: String): Model {
        model?.let { if (modelPath == path) return it }
        conversation?.close()
        conversation = null
        model?.close()
        model = null
        return Model.open(path).also {
            model = it
            modelPath = path
            trimmer.add(it.blocking)
        }
    }
}

val Context.app: App get() = applicationContext as App

internal fun Activity.screen(layout: Int, title: String) {
    setContentView(layout)
    setTitle(title)
    actionBar?.setDisplayHomeAsUpEnabled(!isTaskRoot)
}

@Suppress("UNCHECKED_CAST")
internal fun <T : View> View.part(id: Int): T {
    val found: View = findViewById(id)
    return found as T
}

internal fun <T : View> Activity.part(id: Int): T = window.decorView.part(id)
