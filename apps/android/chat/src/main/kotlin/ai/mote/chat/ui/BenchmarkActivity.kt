package ai.mote.chat.ui

import ai.mote.MoteException
import ai.mote.chat.Benchmark
import ai.mote.chat.R
import ai.mote.chat.SpeedPoint
import android.app.Activity
import android.os.Bundle
import android.view.MenuItem
import android.view.WindowManager
import android.widget.Button
import android.widget.TextView
import kotlinx.coroutines.Job
import kotlinx.coroutines.launch

/** How fast a model is here, and for ten minutes on end. */
class BenchmarkActivity : Activity() {
    private var run: Job? = null
    private val points = mutableListOf<SpeedPoint>()

    override fun onCreate(state: Bundle?) {
        super.onCreate(state)
        screen(R.layout.benchmark, getString(R.string.benchmark))
        part<Button>(R.id.measure).setOnClickListener { begin { measure(it) } }
        part<Button>(R.id.sustained).setOnClickListener { begin { sustain(it) } }
    }

    override fun onDestroy() {
        run?.cancel()
        super.onDestroy()
    }

    override fun onOptionsItemSelected(item: MenuItem): Boolean {
        finish()
        return true
    }

    private fun begin(act: suspend (Benchmark) -> Unit) {
        run?.cancel()
        window.addFlags(WindowManager.LayoutParams.FLAG_KEEP_SCREEN_ON)
        run = app.scope.launch {
            try {
                act(Benchmark(app.model(intent.getStringExtra(ModelsActivity.MODEL).orEmpty())))
            } catch (error: MoteException) {
                tell(error.message.orEmpty())
            } finally {
                window.clearFlags(WindowManager.LayoutParams.FLAG_KEEP_SCREEN_ON)
            }
        }
    }

    private suspend fun measure(benchmark: Benchmark) {
        tell(getString(R.string.measuring))
        val result = benchmark.run()
        val megabytes = 1e6
        tell(
            getString(
                R.string.benchmark_result, result.prefillSpeed, result.decodeSpeed, result.firstTokenMilliseconds,
                result.privateBytes / megabytes, result.fileBackedBytes / megabytes,
            ),
        )
    }

    private suspend fun sustain(benchmark: Benchmark) {
        points.clear()
        benchmark.sustained().collect {
            points.add(it)
            part<PlotView>(R.id.plot).show(points.toList())
            tell(getString(R.string.sustained_result, it.seconds, it.tokensPerSecond))
        }
    }

    private fun tell(sentence: String) {
        part<TextView>(R.id.status).text = sentence
    }
}
