package ai.mote;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ai.mote.blocking.Download;
import ai.mote.blocking.Model;
import ai.mote.blocking.ModelStore;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class StoreTest {
    @TempDir Path folder;
    private byte[] content;
    private FaultyServer server;
    private ModelStore store;

    @BeforeEach
    void open() throws IOException {
        content = Files.readAllBytes(Paths.get(System.getProperty("mote.demo")));
        server = new FaultyServer(content);
        store = new ModelStore(folder.toString());
    }

    @AfterEach
    void close() {
        store.close();
        server.close();
    }

    private String download(DownloadOptions options) {
        return store.download(server.url(), options, null);
    }

    private void fail(FaultyServer.Fault... faults) {
        server.faults.addAll(Arrays.asList(faults));
    }

    static String sha256(byte[] bytes) throws Exception {
        StringBuilder text = new StringBuilder();
        for (byte b : MessageDigest.getInstance("SHA-256").digest(bytes)) {
            text.append(String.format("%02x", b));
        }
        return text.toString();
    }

    @Test
    void downloadsListsFindsAndRemoves() throws Exception {
        AtomicLong last = new AtomicLong();
        String path = store.download(server.url(), DownloadOptions.NONE.withSha256(sha256(content)), progress -> {
            last.set(progress.bytes);
            return true;
        });
        assertEquals(content.length, last.get());
        assertArrayEquals(content, Files.readAllBytes(Paths.get(path)));
        try (Model model = Model.open(path)) {
            assertTrue(model.info().hasTokenizer);
        }
        StoredModel[] listed = store.list(null);
        assertEquals(1, listed.length);
        assertEquals(content.length, listed[0].bytes);
        assertTrue(listed[0].isWhole && listed[0].manifest.contains(sha256(content)) && listed[0].lastUsedSeconds > 0);
        assertEquals(path, store.find("127.0.0.1/file"));
        assertEquals("127.0.0.1/file:file", store.list("127.0.0.1/file")[0].name);
        assertThrows(FileException.class, () -> store.find("127.0.0.1/fill"));
        assertThrows(ArgumentException.class, () -> store.find("nothing"));
        assertEquals(content.length, store.remove("127.0.0.1/file"));
        assertEquals(0, store.list(null).length);
        assertEquals(0, store.evict(0).length);
    }

    @Test
    void goesOnWhereItBrokeOff() throws Exception {
        fail(FaultyServer.Fault.CUT, FaultyServer.Fault.CUT, FaultyServer.Fault.REDIRECT, FaultyServer.Fault.OTHER_RANGE,
                FaultyServer.Fault.BUSY);
        String path = download(DownloadOptions.NONE);
        assertArrayEquals(content, Files.readAllBytes(Paths.get(path)));
        assertTrue(server.ranges.contains("bytes=200000-"), server.ranges.toString());
    }

    @Test
    void whatServersDoWrongIsRightOrRefused() throws Exception {
        Random random = new Random(5);
        FaultyServer.Fault[] all = {FaultyServer.Fault.NONE, FaultyServer.Fault.CUT, FaultyServer.Fault.REDIRECT,
                FaultyServer.Fault.OTHER_RANGE, FaultyServer.Fault.NO_RANGE, FaultyServer.Fault.DAMAGED};
        byte[] other = content.clone();
        for (int i = 0; i < 6; i++) {
            server.faults.clear();
            for (int k = 0; k < 2; k++) {
                fail(all[random.nextInt(all.length)]);
            }
            server.file = i % 3 == 0 ? other : content;
            server.etag = "\"" + (i % 3) + "\"";
            try {
                String path = download(DownloadOptions.NONE.withSha256(sha256(content)));
                assertArrayEquals(content, Files.readAllBytes(Paths.get(path)));
                store.remove("127.0.0.1/file");
            } catch (FileException refused) {
                assertFalse(refused.getMessage().isEmpty());
            }
        }
    }

    @Test
    void aListenerStopsIt() throws Exception {
        MoteException stopped = assertThrows(CancelledException.class, () -> store.download(server.url(),
                DownloadOptions.NONE, progress -> progress.bytes < 1_000_000));
        assertTrue(stopped.getMessage().contains("what has come stays"));
        assertFalse(store.list(null)[0].isWhole);
        download(DownloadOptions.NONE);
        String last = server.ranges.get(server.ranges.size() - 1);
        assertTrue(Integer.parseInt(last.substring(6, last.length() - 1)) >= 1_000_000, last);
        RuntimeException thrown = assertThrows(IllegalArgumentException.class, () -> store.download(
                server.url() + "?2", DownloadOptions.NONE, progress -> {
                    throw new IllegalArgumentException("of the listener");
                }));
        assertEquals("of the listener", thrown.getMessage());
    }

    @Test
    void cancelInterruptsAReadThatStalls() throws Exception {
        fail(FaultyServer.Fault.STALLED);
        try (Download download = store.begin(server.url(), DownloadOptions.NONE)) {
            Thread other = new Thread(() -> {
                try {
                    Thread.sleep(500);
                } catch (InterruptedException error) {
                    return;
                }
                download.cancel();
            });
            other.start();
            long started = System.nanoTime();
            assertThrows(CancelledException.class, () -> {
                while (!download.next().isDone) {}
            });
            assertTrue(System.nanoTime() - started < 20_000_000_000L);
            other.join();
        }
    }

    @Test
    void refusesWhatItShould() throws Exception {
        try (Download metered = store.begin(server.url(), DownloadOptions.NONE)) {
            metered.setMetered(true);
            assertThrows(StateException.class, () -> {
                while (!metered.next().isDone) {}
            });
        }
        try (Download metered = store.begin(server.url(), DownloadOptions.NONE.allowingMetered())) {
            metered.setMetered(true);
            while (!metered.next().isDone) {}
        }
        store.remove("127.0.0.1/file");
        DownloadOptions full = DownloadOptions.NONE.withKeepFreeBytes(Long.MAX_VALUE / 2);
        assertTrue(assertThrows(FileException.class, () -> download(full)).getMessage().contains("are free"));
        server.file = "GGUF and more of it, so that there is a header of sixty-four bytes".getBytes("UTF-8");
        assertTrue(assertThrows(ProgramException.class, () -> download(DownloadOptions.NONE)).getMessage().contains("GGUF"));
        assertThrows(ArgumentException.class, () -> store.begin("nothing", DownloadOptions.NONE));
        assertThrows(ArgumentException.class, () -> store.begin(server.url(), DownloadOptions.NONE.withSha256("x")));
        assertThrows(NullPointerException.class, () -> store.begin(null, DownloadOptions.NONE));
        Download closed = store.begin(server.url(), DownloadOptions.NONE);
        closed.close();
        assertThrows(IllegalStateException.class, closed::next);
        store.close();
        assertThrows(IllegalStateException.class, () -> store.list(null));
    }
}
