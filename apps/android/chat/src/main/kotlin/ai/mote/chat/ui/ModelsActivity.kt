package ai.mote.chat.ui

import ai.mote.MoteException
import ai.mote.chat.InstalledModel
import ai.mote.chat.R
import android.app.Activity
import android.app.AlertDialog
import android.content.Intent
import android.net.Uri
import android.os.Bundle
import android.text.format.Formatter
import android.view.Menu
import android.view.MenuItem
import android.view.View
import android.widget.ArrayAdapter
import android.widget.EditText
import android.widget.ListView
import android.widget.TextView
import kotlinx.coroutines.launch
import java.io.IOException

/** The models on this device: picked from its files, or downloaded. */
class ModelsActivity : Activity() {
    private var models = emptyList<InstalledModel>()

    override fun onCreate(state: Bundle?) {
        super.onCreate(state)
        screen(R.layout.list, getString(R.string.models))
        val list = part<ListView>(R.id.list)
        val empty = part<TextView>(R.id.empty)
        empty.setText(R.string.no_models)
        list.emptyView = empty
        list.setOnItemClickListener { _, _, position, _ -> offer(models[position]) }
    }

    override fun onStart() {
        super.onStart()
        refresh()
    }

    override fun onCreateOptionsMenu(menu: Menu): Boolean {
        menuInflater.inflate(R.menu.models, menu)
        menu.findItem(R.id.download).isVisible = app.models.canDownload
        return true
    }

    override fun onOptionsItemSelected(item: MenuItem): Boolean {
        when (item.itemId) {
            android.R.id.home -> finish()
            R.id.pick -> pick()
            R.id.download -> askReference()
            else -> return super.onOptionsItemSelected(item)
        }
        return true
    }

    override fun onActivityResult(request: Int, result: Int, data: Intent?) {
        val uri = data?.data ?: return
        app.scope.launch { add(uri) }
    }

    private fun refresh() {
        models = app.models.list()
        val lines = models.map { "${it.name}\n${Formatter.formatFileSize(this, it.bytes)}" }
        part<ListView>(R.id.list).adapter = ArrayAdapter(this, android.R.layout.simple_list_item_1, lines)
    }

    private fun offer(model: InstalledModel) {
        val actions = arrayOf(R.string.benchmark, R.string.device, R.string.delete)
        AlertDialog.Builder(this).setTitle(model.name)
            .setItems(actions.map(::getString).toTypedArray()) { _, index ->
                when (actions[index]) {
                    R.string.benchmark -> show(BenchmarkActivity::class.java, model)
                    R.string.device -> show(DeviceActivity::class.java, model)
                    else -> {
                        app.models.remove(model)
                        refresh()
                    }
                }
            }.show()
    }

    private fun show(screen: Class<out Activity>, model: InstalledModel) =
        startActivity(Intent(this, screen).putExtra(MODEL, model.path))

    private fun pick() {
        val pick = Intent(Intent.ACTION_OPEN_DOCUMENT).addCategory(Intent.CATEGORY_OPENABLE).setType("*/*")
        startActivityForResult(pick, 1)
    }

    private suspend fun add(uri: Uri) = reporting {
        val bytes = contentResolver.openInputStream(uri) ?: throw IOException("$uri: cannot be read")
        bytes.use { app.models.add(nameOf(uri), it) { sum -> runOnUiThread { tell(Formatter.formatFileSize(this, sum)) } } }
    }

    private fun askReference() {
        val field = EditText(this).apply { setHint(R.string.reference) }
        AlertDialog.Builder(this).setTitle(R.string.download).setView(field)
            .setPositiveButton(R.string.download) { _, _ -> app.scope.launch { download(field.text.toString()) } }
            .setNegativeButton(android.R.string.cancel, null).show()
    }

    private suspend fun download(reference: String) = reporting {
        app.models.download(reference).collect {
            tell("${Formatter.formatFileSize(this, it.bytes)} / ${Formatter.formatFileSize(this, it.total)}")
        }
    }

    private suspend fun reporting(act: suspend () -> Unit) {
        try {
            act()
            tell("")
        } catch (error: IOException) {
            tell(error.message.orEmpty())
        } catch (error: MoteException) {
            tell(error.message.orEmpty())
        }
        refresh()
    }

    private fun tell(sentence: String) {
        val status = part<TextView>(R.id.status)
        status.text = sentence
        status.visibility = if (sentence.isEmpty()) View.GONE else View.VISIBLE
    }

    companion object {
        const val MODEL = "model"
    }
}
