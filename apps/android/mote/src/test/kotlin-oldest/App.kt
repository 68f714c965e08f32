import ai.mote.ChatEvent
import ai.mote.GenerateOptions
import ai.mote.Model
import kotlinx.coroutines.runBlocking

fun main(arguments: Array<String>) = runBlocking {
    Model.open(arguments[0]).use { model ->
        model.chat("You write Python.").use { chat ->
            chat.send("Hello", GenerateOptions(seed = 2)).collect { if (it is ChatEvent.Content) print(it.text) }
        }
        model.session().use { session -> session.generate("def ", GenerateOptions(maxNewTokens = 8)).collect { print(it) } }
    }
}
