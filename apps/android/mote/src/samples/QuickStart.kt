import ai.mote.ChatEvent
import ai.mote.GenerateOptions
import ai.mote.Model
import ai.mote.generateJson
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.Serializable

@Serializable
data class Point(val x: Int, val y: Int)

fun main(arguments: Array<String>) = runBlocking {
    Model.open(arguments[0]).use { model ->
        model.chat(instructions = "You write Python.").use { chat ->
            chat.send("Hello", GenerateOptions(temperature = 0.7, seed = 2)).collect { event ->
                when (event) {
                    is ChatEvent.Content -> print(event.text)
                    is ChatEvent.Done -> println("\n${event.statistics.generation.generatedTokens} tokens")
                    else -> {} // reasoning, calls of tools
                }
            }
        }
        model.session().use { session ->
            session.generate("def ", GenerateOptions(maxNewTokens = 16)).collect { print(it) }
            println(session.generateJson<Point>("\nA point: "))
        }
    }
}
