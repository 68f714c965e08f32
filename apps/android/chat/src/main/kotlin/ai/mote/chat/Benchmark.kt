package ai.mote.chat

import ai.mote.Model
import ai.mote.Mote
import ai.mote.Statistics
import ai.mote.options
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.toList

/** tokens a second, milliseconds, bytes */
data class BenchmarkResult(
    val prefillSpeed: Double,
    val decodeSpeed: Double,
    val firstTokenMilliseconds: Double,
    val privateBytes: Long,
    val fileBackedBytes: Long,
)

/** The speed of the last while of a long run. */
data class SpeedPoint(val seconds: Double, val tokensPerSecond: Double)

/** What a model does on this device. now: seconds of a clock that only goes forward */
class Benchmark(private val model: Model, private val now: () -> Double = { System.nanoTime() / 1e9 }) {
    private val fixed = options("ignore_eos" to true, "temperature" to 0, "speculative" to "off")

    /** A prompt of so many tokens, then so many that are generated. */
    suspend fun run(promptTokens: Int = 256, newTokens: Int = 128): BenchmarkResult =
        model.session(options("context_length" to promptTokens + newTokens + 1)).use { session ->
            var found: Statistics? = null
            session.pieces(prompt(promptTokens), fixed.with("max_new_tokens", newTokens)) { found = it }.toList()
            val statistics = checkNotNull(found)
            val memory = Mote.memory()
            BenchmarkResult(
                statistics.promptTokens / statistics.prefillSeconds,
                (statistics.generatedTokens - 1) / statistics.decodeSeconds,
                statistics.timeToFirstTokenSeconds * 1e3, memory.peakPrivateBytes, memory.peakFileBackedBytes,
            )
        }

    /** Generates for so long, and tells how fast it was in each part of it: whether the device slows down. */
    fun sustained(seconds: Double = 600.0, pointEvery: Double = 5.0): Flow<SpeedPoint> = flow {
        model.session(options("context_length" to 1024, "overflow" to "shift")).use { session ->
            val start = now()
            var since = start
            var tokens = 0
            val endless = fixed.with("max_time", seconds)
            session.pieces(prompt(16), endless).collect {
                tokens++
                val time = now()
                if (time - since >= pointEvery) {
                    emit(SpeedPoint(time - start, tokens / (time - since)))
                    since = time
                    tokens = 0
                }
            }
        }
    }

    private fun prompt(count: Int) = IntArray(count) { (it * 7 + 3) % model.info.vocabSize }
}
