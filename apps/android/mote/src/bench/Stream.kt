package ai.mote.bench

import ai.mote.Options
import ai.mote.blocking.Session
import ai.mote.options
import kotlinx.coroutines.runBlocking
import ai.mote.Model as KotlinModel
import ai.mote.blocking.Model as BlockingModel

private val FORCED: Options = options("regex" to "(def f [(]x[)]: return x; ){100}")
private val PROMPT = intArrayOf(1)

/** Nanoseconds a token, as stream.c measures them. */
private fun blocking(session: Session): Double {
    session.reset()
    session.generation(PROMPT, FORCED).use { generation ->
        generation.next()
        val begin = System.nanoTime()
        var count = 0
        do {
            val piece = generation.next()
            count++
        } while (!piece.isLast)
        return (System.nanoTime() - begin).toDouble() / count
    }
}

private suspend fun flow(session: ai.mote.Session): Double {
    session.reset()
    var begin = 0L
    var count = -1
    session.pieces(PROMPT, FORCED).collect {
        if (count++ < 0) begin = System.nanoTime()
    }
    return (System.nanoTime() - begin).toDouble() / count
}

fun main(arguments: Array<String>) {
    val (model, runs) = arguments
    BlockingModel.open(model).use { opened ->
        opened.session().use { session -> println("%.0f".format(List(runs.toInt()) { blocking(session) }.min())) }
    }
    runBlocking {
        KotlinModel.open(model).use { opened ->
            opened.session().use { session -> println("%.0f".format(List(runs.toInt()) { flow(session) }.min())) }
        }
    }
}
