package ai.mote.chat.ui

import ai.mote.MoteException
import ai.mote.chat.R
import ai.mote.chat.deviceFacts
import android.app.Activity
import android.os.Bundle
import android.view.MenuItem
import android.widget.ArrayAdapter
import android.widget.ListView
import kotlinx.coroutines.launch

/** What this device is, and what runs a model on it. */
class DeviceActivity : Activity() {
    override fun onCreate(state: Bundle?) {
        super.onCreate(state)
        screen(R.layout.list, getString(R.string.device))
        app.scope.launch {
            val lines = try {
                deviceFacts(intent.getStringExtra(ModelsActivity.MODEL)?.let { app.model(it) }).map { "${it.label}\n${it.value}" }
            } catch (error: MoteException) {
                listOf(error.message.orEmpty())
            }
            part<ListView>(R.id.list).adapter = ArrayAdapter(this@DeviceActivity, android.R.layout.simple_list_item_1, lines)
        }
    }

    override fun onOptionsItemSelected(item: MenuItem): Boolean {
        finish()
        return true
    }
}
