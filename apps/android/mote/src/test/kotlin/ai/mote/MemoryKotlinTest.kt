package ai.mote

import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Test

class MemoryKotlinTest {
    @Test
    fun aFlowNeedsNoMoreAndMoreMemory() = runBlocking<Unit> {
        val options = GenerateOptions(ignoreEos = true, maxNewTokens = MemoryTest.NUM_TOKENS, temperature = 0.0)
        Model.open(KotlinTest.DEMO).use { model ->
            model.session(SessionOptions(contextLength = 256, overflow = "shift")).use { session ->
                var count = 0
                var before: MemorySnapshot? = null
                session.pieces(model.tokenize(KotlinTest.PROMPT), options).collect {
                    if (++count == MemoryTest.NUM_TOKENS / 2) before = MemorySnapshot()
                }
                before!!.expectNoMore("${MemoryTest.NUM_TOKENS / 2} tokens, Flow<Piece>")
            }
        }
    }
}
