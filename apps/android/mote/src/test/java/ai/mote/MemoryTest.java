package ai.mote;

import static org.junit.jupiter.api.Assertions.assertTrue;

import ai.mote.blocking.Generation;
import ai.mote.blocking.Model;
import ai.mote.blocking.Session;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import org.junit.jupiter.api.Test;

/** -Dmote.tokens says how many are streamed. */
class MemoryTest {
    private static final int NUM_TOKENS = Integer.getInteger("mote.tokens", 4000);

    @Test
    void streamingNeedsNoMoreAndMoreMemory() throws IOException {
        Options options = Options.of("ignore_eos", true).with("max_new_tokens", NUM_TOKENS + 1).with("temperature", 0);
        try (Model model = Model.open(BlockingTest.DEMO);
                Session session = model.session(Options.of("context_length", 256).with("overflow", "shift"));
                Generation generation = session.generation("def ", options)) {
            stream(generation, NUM_TOKENS / 2);
            long heap = usedHeap();
            long resident = residentBytes();
            stream(generation, NUM_TOKENS / 2);
            long moreHeap = usedHeap() - heap;
            long moreResident = residentBytes() - resident;
            System.out.printf("%d tokens: heap %+d bytes, process %+d bytes%n", NUM_TOKENS, moreHeap, moreResident);
            assertTrue(moreHeap < 256 << 10, moreHeap + " bytes more");
            assertTrue(moreResident < 16 << 20, moreResident + " bytes more");
        }
    }

    private static void stream(Generation generation, int count) {
        for (int i = 0; i < count; i++) {
            generation.next();
        }
    }

    private static long usedHeap() {
        long least = Long.MAX_VALUE;
        for (int i = 0; i < 5; i++) {
            System.gc();
            Runtime runtime = Runtime.getRuntime();
            least = Math.min(least, runtime.totalMemory() - runtime.freeMemory());
        }
        return least;
    }

    /** 0 where the system does not tell. */
    private static long residentBytes() throws IOException {
        Path status = Paths.get("/proc/self/statm");
        if (!Files.exists(status)) {
            return 0;
        }
        return Long.parseLong(new String(Files.readAllBytes(status)).split(" ")[1]) * 4096;
    }
}
