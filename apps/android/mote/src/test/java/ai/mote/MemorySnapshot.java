package ai.mote;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;

/** What the heap and the process held when it was made. */
final class MemorySnapshot {
    private final long heap = usedHeap();
    private final long resident = residentBytes();

    /** Fails if there is more now. what: for the line that it prints */
    void expectNoMore(String what) {
        long moreHeap = usedHeap() - heap;
        long moreResident = residentBytes() - resident;
        System.out.printf("%s: heap %+d bytes, process %+d bytes%n", what, moreHeap, moreResident);
        assertTrue(moreHeap < 256 << 10, moreHeap + " bytes more");
        assertTrue(moreResident < 16 << 20, moreResident + " bytes more");
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
    private static long residentBytes() {
        Path status = Paths.get("/proc/self/statm");
        try {
            return Files.exists(status) ? Long.parseLong(new String(Files.readAllBytes(status)).split(" ")[1]) * 4096 : 0;
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
