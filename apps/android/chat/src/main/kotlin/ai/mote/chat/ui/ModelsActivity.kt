package ai.mote.chat.ui

import ai.mote.chat.InstalledModel
import ai.mote.chat.MeteredQuestion
import ai.mote.chat.ModelsState
import ai.mote.chat.R
import ai.mote.chat.StoppedDownload
import ai.mote.chat.Transfer
import android.app.Activity
import android.app.AlertDialog
import android.content.Intent
import android.content.pm.PackageManager
import android.net.Uri
import android.os.Build
import android.os.Bundle
import android.text.format.Formatter
import android.view.Menu
import android.view.MenuItem
import android.view.View
import android.widget.ArrayAdapter
import android.widget.EditText
import android.widget.ListView
import android.widget.ProgressBar
import android.widget.TextView
import kotlinx.coroutines.Job
import kotlinx.coroutines.launch
import java.io.IOException

/** The models on this device: picked from its files, or downloaded. What it shows lives in [ai.mote.chat.Models]. */
class ModelsActivity : Activity() {
    private var watching: Job? = null
    private var shown = ModelsState()
    private var question: AlertDialog? = null

    override fun onCreate(state: Bundle?) {
        super.onCreate(state)
        screen(R.layout.models, getString(R.string.models))
        val list = part<ListView>(R.id.list)
        list.emptyView = part(R.id.empty)
        list.setOnItemClickListener { _, _, position, _ -> offer(position) }
        part<View>(R.id.transfer_stop).setOnClickListener { app.models.stop() }
    }

    override fun onStart() {
        super.onStart()
        watching = app.scope.launch {
            app.models.refresh()
            app.models.state.collect(::show)
        }
    }

    override fun onStop() {
        watching?.cancel()
        question?.dismiss()
        question = null
        super.onStop()
    }

    override fun onCreateOptionsMenu(menu: Menu): Boolean {
        menuInflater.inflate(R.menu.models, menu)
        return true
    }

    override fun onOptionsItemSelected(item: MenuItem): Boolean {
        when (item.itemId) {
            android.R.id.home -> finish()
            R.id.pick -> pick()
            R.id.download -> askReference()
            R.id.make_room -> makeRoom()
            else -> return super.onOptionsItemSelected(item)
        }
        return true
    }

    override fun onActivityResult(request: Int, result: Int, data: Intent?) {
        val uri = data?.data ?: return
        app.models.add(nameOf(uri)) { app.contentResolver.openInputStream(uri) ?: throw IOException("$uri: cannot be read") }
    }

    private fun show(state: ModelsState) {
        if (state.models != shown.models || state.stopped != shown.stopped) list(state)
        if (state.error != shown.error) tell(state.error.orEmpty())
        part<TextView>(R.id.space).text = getString(R.string.space, size(state.storedBytes), size(state.freeBytes))
        show(state.transfer)
        state.question?.let(::ask)
        shown = state
    }

    private fun list(state: ModelsState) {
        val lines = state.models.map { getString(R.string.model_line, it.name, size(it.bytes)) } +
            state.stopped.map { getString(R.string.stopped_line, it.name, progress(it.bytes, it.totalBytes)) }
        part<ListView>(R.id.list).adapter = ArrayAdapter(this, android.R.layout.simple_list_item_1, lines)
    }

    private fun show(transfer: Transfer?) {
        part<View>(R.id.transfer).visibility = if (transfer == null) View.GONE else View.VISIBLE
        if (transfer == null) return
        val far = transfer.waitsFor.ifEmpty { progress(transfer.bytes, transfer.totalBytes) }
        part<TextView>(R.id.transfer_text).text = getString(R.string.model_line, getString(R.string.downloading, transfer.what), far)
        val bar = part<ProgressBar>(R.id.transfer_progress)
        bar.isIndeterminate = transfer.percent == null
        bar.progress = transfer.percent ?: 0
    }

    private fun progress(bytes: Long, total: Long) =
        if (total > 0) getString(R.string.transfer_bytes, size(bytes), size(total)) else size(bytes)

    private fun size(bytes: Long) = Formatter.formatFileSize(this, bytes)

    private fun offer(position: Int) {
        val model = shown.models.getOrNull(position)
        if (model != null) offer(model) else offer(shown.stopped[position - shown.models.size])
    }

    private fun offer(model: InstalledModel) = choose(model.name, R.string.benchmark, R.string.device, R.string.delete) {
        when (it) {
            R.string.benchmark -> show(BenchmarkActivity::class.java, model)
            R.string.device -> show(DeviceActivity::class.java, model)
            else -> app.scope.launch { app.models.remove(model) }
        }
    }

    private fun offer(stopped: StoppedDownload) = choose(stopped.name, R.string.go_on, R.string.delete) {
        if (it == R.string.go_on) download(stopped.reference) else app.scope.launch { app.models.discard(stopped) }
    }

    private fun choose(title: String, vararg actions: Int, act: (Int) -> Unit) {
        AlertDialog.Builder(this).setTitle(title)
            .setItems(actions.map(::getString).toTypedArray()) { _, index -> act(actions[index]) }.show()
    }

    private fun show(screen: Class<out Activity>, model: InstalledModel) =
        startActivity(Intent(this, screen).putExtra(MODEL, model.path))

    private fun pick() {
        val pick = Intent(Intent.ACTION_OPEN_DOCUMENT).addCategory(Intent.CATEGORY_OPENABLE).setType("*/*")
        startActivityForResult(pick, 1)
    }

    private fun askReference() {
        val field = EditText(this).apply { setHint(R.string.reference) }
        AlertDialog.Builder(this).setTitle(R.string.download).setView(field)
            .setPositiveButton(R.string.download) { _, _ -> download(field.text.toString()) }
            .setNegativeButton(android.R.string.cancel, null).show()
    }

    private fun download(reference: String) {
        if (Build.VERSION.SDK_INT >= ASKS_TO_NOTIFY && checkSelfPermission(NOTIFY) != PackageManager.PERMISSION_GRANTED) {
            requestPermissions(arrayOf(NOTIFY), 0) // the download needs it not
        }
        app.models.download(reference)
    }

    private fun ask(metered: MeteredQuestion) {
        if (question?.isShowing == true) return
        question = AlertDialog.Builder(this).setMessage(metered.sentence)
            .setPositiveButton(R.string.download_anyway) { _, _ -> app.models.download(metered.reference, allowMetered = true) }
            .setNegativeButton(android.R.string.cancel) { _, _ -> app.models.dismiss() }
            .setOnCancelListener { app.models.dismiss() }.show()
    }

    private fun makeRoom() {
        val limits = listOf(3, 2, 0).map { shown.storedBytes * it / 4 }
        AlertDialog.Builder(this).setTitle(R.string.make_room)
            .setItems(limits.map { getString(R.string.keep_at_most, size(it)) }.toTypedArray()) { _, index ->
                app.scope.launch { app.models.evict(limits[index]) }
            }.setNegativeButton(android.R.string.cancel, null).show()
    }

    private fun tell(sentence: String) {
        val status = part<TextView>(R.id.status)
        status.text = sentence
        status.visibility = if (sentence.isEmpty()) View.GONE else View.VISIBLE
    }

    companion object {
        const val MODEL = "model"
        private const val ASKS_TO_NOTIFY = 33
        private const val NOTIFY = "android.permission.POST_NOTIFICATIONS"
    }
}
