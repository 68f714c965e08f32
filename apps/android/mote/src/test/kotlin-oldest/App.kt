import ai.mote.ChatEvent
import ai.mote.Model
import ai.mote.options
import kotlinx.coroutines.runBlocking

fun main(arguments: Array<String>) = runBlocking {
    Model.open(arguments[0]).use { model ->
        model.chat("You write Python.").use { chat ->
            chat.send("Hello", options("seed" to 2)).collect { if (it is ChatEvent.Content) print(it.text) }
        }
        model.session().use { session -> session.generate("def ", options("max_new_tokens" to 8)).collect { print(it) } }
    }
}
