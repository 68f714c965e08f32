package ai.mote.chat.ui

import ai.mote.chat.R
import ai.mote.chat.SavedChat
import android.app.Activity
import android.app.AlertDialog
import android.content.Intent
import android.os.Bundle
import android.view.Menu
import android.view.MenuItem
import android.widget.ArrayAdapter
import android.widget.ListView
import kotlinx.coroutines.launch

/** The chats, and the way to everything else. */
class ChatsActivity : Activity() {
    private var chats = emptyList<SavedChat>()

    override fun onCreate(state: Bundle?) {
        super.onCreate(state)
        screen(R.layout.list, getString(R.string.chats))
        val list = part<ListView>(R.id.list)
        list.emptyView = part(R.id.empty)
        list.setOnItemClickListener { _, _, position, _ -> open(chats[position].id) }
        list.setOnItemLongClickListener { _, _, position, _ ->
            confirmDelete(chats[position])
            true
        }
    }

    override fun onStart() {
        super.onStart()
        refresh()
    }

    override fun onCreateOptionsMenu(menu: Menu): Boolean {
        menuInflater.inflate(R.menu.chats, menu)
        return true
    }

    override fun onOptionsItemSelected(item: MenuItem): Boolean {
        when (item.itemId) {
            R.id.new_chat -> app.scope.launch { choose() }
            R.id.models -> startActivity(Intent(this, ModelsActivity::class.java))
            R.id.device -> startActivity(Intent(this, DeviceActivity::class.java))
            else -> return super.onOptionsItemSelected(item)
        }
        return true
    }

    private fun refresh() {
        chats = app.chats.list()
        val titles = chats.map { it.title.ifEmpty { getString(R.string.untitled) } }
        part<ListView>(R.id.list).adapter = ArrayAdapter(this, android.R.layout.simple_list_item_1, titles)
    }

    /** With the only model there is, or the one that is picked. */
    private suspend fun choose() {
        app.models.refresh()
        val models = app.models.state.value.models
        when (models.size) {
            0 -> startActivity(Intent(this, ModelsActivity::class.java))
            1 -> begin(models[0].path)
            else -> AlertDialog.Builder(this).setTitle(R.string.models)
                .setItems(models.map { it.name }.toTypedArray()) { _, index -> begin(models[index].path) }.show()
        }
    }

    private fun begin(model: String) {
        val chat = app.chats.create(model)
        app.chats.save(chat, "[]")
        open(chat.id)
    }

    private fun open(id: String) = startActivity(Intent(this, ChatActivity::class.java).putExtra(ChatActivity.ID, id))

    private fun confirmDelete(chat: SavedChat) {
        AlertDialog.Builder(this).setMessage(getString(R.string.delete_question, chat.title))
            .setPositiveButton(R.string.delete) { _, _ ->
                app.chats.delete(chat.id)
                refresh()
            }.setNegativeButton(android.R.string.cancel, null).show()
    }
}
