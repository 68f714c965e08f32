package ai.mote.chat.ui

import ai.mote.MoteException
import ai.mote.chat.Conversation
import ai.mote.chat.ConversationState
import ai.mote.chat.R
import ai.mote.chat.Role
import android.app.Activity
import android.app.AlertDialog
import android.content.Intent
import android.net.Uri
import android.os.Bundle
import android.provider.OpenableColumns
import android.view.Menu
import android.view.MenuItem
import android.view.View
import android.widget.Button
import android.widget.EditText
import android.widget.ListView
import android.widget.TextView
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.launch
import kotlinx.coroutines.withContext
import java.io.IOException

/** One chat. What it shows lives in [Conversation], so that turning the device changes nothing. */
class ChatActivity : Activity() {
    private var conversation: Conversation? = null
    private var watching: Job? = null
    private lateinit var messages: MessageAdapter

    override fun onCreate(state: Bundle?) {
        super.onCreate(state)
        screen(R.layout.chat, getString(R.string.untitled))
        messages = MessageAdapter(this)
        val list = part<ListView>(R.id.messages)
        list.adapter = messages
        list.setOnItemClickListener { _, _, position, _ -> messages.toggleReasoning(position) }
        list.setOnItemLongClickListener { _, _, position, _ ->
            edit(position)
            true
        }
        part<View>(R.id.send).setOnClickListener { send() }
        part<View>(R.id.attach).setOnClickListener { pick() }
    }

    override fun onStart() {
        super.onStart()
        watching = app.scope.launch { watch() }
    }

    override fun onStop() {
        watching?.cancel()
        if (!isChangingConfigurations) app.scope.launch { persist() }
        super.onStop()
    }

    override fun onCreateOptionsMenu(menu: Menu): Boolean {
        menuInflater.inflate(R.menu.chat, menu)
        return true
    }

    override fun onOptionsItemSelected(item: MenuItem): Boolean {
        val chat = conversation ?: return super.onOptionsItemSelected(item)
        when (item.itemId) {
            android.R.id.home -> finish()
            R.id.regenerate -> chat.regenerate()
            R.id.settings -> startActivity(Intent(this, SettingsActivity::class.java).putExtra(ID, chat.id))
            R.id.share -> share(chat)
            else -> return super.onOptionsItemSelected(item)
        }
        return true
    }

    override fun onActivityResult(request: Int, result: Int, data: Intent?) {
        val uri = data?.data ?: return
        app.scope.launch { attach(uri) }
    }

    private suspend fun watch() {
        val saved = app.chats.list().firstOrNull { it.id == intent.getStringExtra(ID) } ?: return finish()
        try {
            val chat = app.conversation(saved)
            conversation = chat
            chat.state.collect(::show)
        } catch (error: MoteException) {
            tell(error.message.orEmpty())
        }
    }

    private suspend fun persist() {
        try {
            conversation?.persist()
        } catch (error: MoteException) {
            // The next start computes the chat again.
        } catch (error: IllegalStateException) {
            // Another chat was opened.
        }
    }

    private fun show(state: ConversationState) {
        title = state.title.ifEmpty { getString(R.string.untitled) }
        messages.show(state.messages + listOfNotNull(state.draft))
        val status = part<TextView>(R.id.status)
        status.text = state.error ?: state.statistics?.generation?.let {
            getString(R.string.speed, (it.generatedTokens - 1) / it.decodeSeconds, it.timeToFirstTokenSeconds)
        } ?: ""
        val attached = part<TextView>(R.id.attached)
        attached.text = state.attachments.joinToString { it.name }
        attached.visibility = if (state.attachments.isEmpty()) View.GONE else View.VISIBLE
        part<Button>(R.id.send).setText(if (state.isWriting) R.string.stop else R.string.send)
    }

    private fun send() {
        val chat = conversation ?: return
        val field = part<EditText>(R.id.text)
        if (chat.state.value.isWriting) return chat.stop()
        chat.send(field.text.toString())
        field.setText("")
    }

    private fun edit(position: Int) {
        val chat = conversation ?: return
        val message = chat.state.value.messages.getOrNull(position)?.takeIf { it.role == Role.USER } ?: return
        val field = EditText(this).apply { setText(message.text) }
        AlertDialog.Builder(this).setTitle(R.string.edit).setView(field)
            .setPositiveButton(R.string.send) { _, _ -> chat.edit(position, field.text.toString()) }
            .setNegativeButton(android.R.string.cancel, null).show()
    }

    private fun share(chat: Conversation) {
        val send = Intent(Intent.ACTION_SEND).setType("text/markdown").putExtra(Intent.EXTRA_TEXT, chat.export())
        startActivity(Intent.createChooser(send, getString(R.string.share)))
    }

    private fun pick() {
        val pick = Intent(Intent.ACTION_OPEN_DOCUMENT).addCategory(Intent.CATEGORY_OPENABLE).setType("text/*")
        startActivityForResult(pick, 1)
    }

    private suspend fun attach(uri: Uri) {
        try {
            val text = withContext(Dispatchers.IO) { textOf(uri) }
            conversation?.attach(nameOf(uri), text)
        } catch (error: IOException) {
            tell(error.message.orEmpty())
        }
    }

    private fun textOf(uri: Uri): String {
        val bytes = contentResolver.openInputStream(uri)?.use { it.readBytes() } ?: throw IOException("$uri: cannot be read")
        if (bytes.size > MOST_ATTACHED) throw IOException(getString(R.string.too_long, MOST_ATTACHED shr 10))
        return bytes.toString(Charsets.UTF_8)
    }

    private fun tell(sentence: String) {
        part<TextView>(R.id.status).text = sentence
    }

    companion object {
        const val ID = "id"
        private const val MOST_ATTACHED = 256 shl 10
    }
}

internal fun Activity.nameOf(uri: Uri): String {
    val columns = arrayOf(OpenableColumns.DISPLAY_NAME)
    val name = contentResolver.query(uri, columns, null, null, null)?.use { if (it.moveToFirst()) it.getString(0) else null }
    return name ?: uri.lastPathSegment.orEmpty()
}
