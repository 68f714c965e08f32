package ai.mote.chat.ui

import ai.mote.chat.R
import ai.mote.chat.Role
import ai.mote.chat.ShownMessage
import ai.mote.chat.text.styled
import android.app.Activity
import android.view.Gravity
import android.view.View
import android.view.ViewGroup
import android.widget.BaseAdapter
import android.widget.LinearLayout
import android.widget.TextView

/** Messages as bubbles; reasoning is folded until it is tapped. */
internal class MessageAdapter(private val activity: Activity) : BaseAdapter() {
    private var messages = emptyList<ShownMessage>()
    private val unfolded = mutableSetOf<Int>()

    fun show(next: List<ShownMessage>) {
        messages = next
        notifyDataSetChanged()
    }

    fun toggleReasoning(position: Int) {
        if (!unfolded.remove(position)) unfolded.add(position)
        notifyDataSetChanged()
    }

    override fun getCount(): Int = messages.size

    override fun getItem(position: Int): ShownMessage = messages[position]

    override fun getItemId(position: Int): Long = position.toLong()

    override fun getView(position: Int, reused: View?, parent: ViewGroup): View {
        val view = reused ?: activity.layoutInflater.inflate(R.layout.message, parent, false)
        val message = messages[position]
        val isUser = message.role == Role.USER
        (view as LinearLayout).setGravity(if (isUser) Gravity.END else Gravity.START)
        val text = view.part<TextView>(R.id.message_text)
        text.text = if (isUser) message.text else spanned(styled(message.text))
        text.setBackgroundResource(if (isUser) R.drawable.bubble_user else R.drawable.bubble)
        text.visibility = if (message.text.isEmpty()) View.GONE else View.VISIBLE
        text.contentDescription = activity.getString(if (isUser) R.string.you_said else R.string.model_said, text.text)
        val reasoning = view.part<TextView>(R.id.message_reasoning)
        val isOpen = position in unfolded
        reasoning.visibility = if (message.reasoning.isEmpty()) View.GONE else View.VISIBLE
        reasoning.text = if (isOpen) message.reasoning else activity.getString(R.string.reasoning)
        return view
    }
}
