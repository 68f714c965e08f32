package ai.mote;

import ai.mote.blocking.Generation;
import ai.mote.blocking.Model;
import ai.mote.blocking.Session;
import org.junit.jupiter.api.Test;

/** -Dmote.tokens says how many are streamed while memory is watched, after as many others. */
class MemoryTest {
    static final int NUM_TOKENS = 2 * Integer.getInteger("mote.tokens", 2000);

    @Test
    void streamingNeedsNoMoreAndMoreMemory() {
        Options options = Options.of("ignore_eos", true).with("max_new_tokens", NUM_TOKENS + 1).with("temperature", 0);
        try (Model model = Model.open(BlockingTest.DEMO);
                Session session = model.session(Options.of("context_length", 256).with("overflow", "shift"));
                Generation generation = session.generation("def ", options)) {
            stream(generation, NUM_TOKENS / 2);
            MemorySnapshot before = new MemorySnapshot();
            stream(generation, NUM_TOKENS / 2);
            before.expectNoMore(NUM_TOKENS / 2 + " tokens, Generation.next");
        }
    }

    private static void stream(Generation generation, int count) {
        for (int i = 0; i < count; i++) {
            generation.next();
        }
    }
}
