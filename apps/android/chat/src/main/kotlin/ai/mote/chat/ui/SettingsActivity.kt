package ai.mote.chat.ui

import ai.mote.MoteException
import ai.mote.chat.ChatSettings
import ai.mote.chat.Conversation
import ai.mote.chat.R
import ai.mote.chat.SETTINGS
import android.app.Activity
import android.os.Bundle
import android.view.MenuItem
import android.widget.EditText
import android.widget.LinearLayout
import android.widget.TextView
import kotlinx.coroutines.launch

/** The system prompt and the options of a chat: a field each, as the library describes them. */
class SettingsActivity : Activity() {
    private val fields = LinkedHashMap<String, EditText>()
    private lateinit var instructions: EditText
    private var conversation: Conversation? = null

    override fun onCreate(state: Bundle?) {
        super.onCreate(state)
        screen(R.layout.form, getString(R.string.settings))
        app.scope.launch { load() }
    }

    private suspend fun load() {
        val saved = app.chats.list().firstOrNull { it.id == intent.getStringExtra(ChatActivity.ID) } ?: return finish()
        val settings = try {
            app.conversation(saved).also { conversation = it }.settings
        } catch (error: MoteException) {
            return finish()
        }
        instructions = field(getString(R.string.instructions), "", settings.instructions)
        for (setting in SETTINGS) {
            val hint = "${setting.default} ${setting.unit}".trim()
            val field = field("${setting.name}: ${setting.help}", hint, settings.values[setting.name].orEmpty())
            field.setOnFocusChangeListener { _, hasFocus ->
                if (!hasFocus) field.error = setting.problem(field.text.toString())
            }
            fields[setting.name] = field
        }
    }

    private fun field(label: String, hint: String, text: String): EditText {
        val form = part<LinearLayout>(R.id.form)
        val field = EditText(this)
        field.id = android.view.View.generateViewId()
        field.hint = hint
        field.setText(text)
        form.addView(TextView(this).apply { this.text = label; labelFor = field.id })
        form.addView(field)
        return field
    }

    override fun onOptionsItemSelected(item: MenuItem): Boolean {
        finish()
        return true
    }

    /** What is no value of its option is left out. */
    override fun onPause() {
        super.onPause()
        val chat = conversation ?: return
        val valid = SETTINGS.associate { it to fields.getValue(it.name).text.toString() }.filter { (setting, text) ->
            text.isNotEmpty() && setting.problem(text) == null
        }
        val settings = ChatSettings(instructions.text.toString(), valid.mapKeys { it.key.name })
        if (settings != chat.settings) chat.change(settings)
    }
}
