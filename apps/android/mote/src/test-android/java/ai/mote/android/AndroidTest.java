package ai.mote.android;

import static android.content.ComponentCallbacks2.TRIM_MEMORY_BACKGROUND;
import static android.content.ComponentCallbacks2.TRIM_MEMORY_COMPLETE;
import static android.content.ComponentCallbacks2.TRIM_MEMORY_MODERATE;
import static android.content.ComponentCallbacks2.TRIM_MEMORY_RUNNING_CRITICAL;
import static android.content.ComponentCallbacks2.TRIM_MEMORY_RUNNING_LOW;
import static android.content.ComponentCallbacks2.TRIM_MEMORY_RUNNING_MODERATE;
import static android.content.ComponentCallbacks2.TRIM_MEMORY_UI_HIDDEN;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ai.mote.FileException;
import ai.mote.MoteException;
import ai.mote.Options;
import ai.mote.ProgramException;
import ai.mote.blocking.Model;
import ai.mote.blocking.PrefixCache;
import ai.mote.blocking.Session;
import android.content.ContentResolver;
import android.content.Context;
import android.content.res.AssetFileDescriptor;
import android.net.Uri;
import android.os.ParcelFileDescriptor;
import android.os.PerformanceHintManager;
import android.os.PowerManager;
import android.os.SystemClock;
import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Collections;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What Android's own classes do is not tested: others stand in for them. */
class AndroidTest {
    private static final File DEMO = new File(System.getProperty("mote.demo"));
    private static final Uri URI = new Uri("content://files/7");

    @TempDir
    File folder;

    private interface Provider {
        AssetFileDescriptor open() throws IOException;
    }

    private static ContentResolver resolver(Provider provider) {
        return new ContentResolver() {
            @Override
            public AssetFileDescriptor openAssetFileDescriptor(Uri uri, String mode) throws FileNotFoundException {
                assertEquals("r", mode);
                try {
                    return provider.open();
                } catch (FileNotFoundException error) {
                    throw error;
                } catch (IOException error) {
                    throw new IllegalStateException(error);
                }
            }
        };
    }

    private static Model open(Provider provider) {
        return ModelFiles.open(resolver(provider), URI, Options.NONE, null);
    }

    private static String refusal(Class<? extends MoteException> type, String code, Provider provider) {
        MoteException error = assertThrows(type, () -> open(provider));
        assertEquals(code, error.codeName);
        assertTrue(error.getMessage().startsWith("content://files/7: "), error.getMessage());
        return error.getMessage();
    }

    @Test
    void opensUrisAndClosesTheirFiles() throws IOException {
        ParcelFileDescriptor file = new ParcelFileDescriptor(DEMO);
        try (Model model = open(() -> new AssetFileDescriptor(file, 0, -1)); Session session = model.session()) {
            assertFalse(file.isOpen());
            session.generate("def ", Options.of("max_new_tokens", 2), text -> true);
        }
    }

    @Test
    void opensPartsOfPackages() throws IOException {
        File pack = new File(folder, "pack");
        try (OutputStream out = Files.newOutputStream(pack.toPath())) {
            out.write(new byte[4096]);
            Files.copy(DEMO.toPath(), out);
            out.write(new byte[100]);
        }
        try (AssetFileDescriptor asset = new AssetFileDescriptor(new ParcelFileDescriptor(pack), 4096, DEMO.length());
                Model model = ModelFiles.open(asset, Options.NONE, null)) {
            assertEquals(DEMO.length(), model.info().fileBytes);
        }
        try (ParcelFileDescriptor file = new ParcelFileDescriptor(pack)) {
            assertThrows(ProgramException.class, () -> ModelFiles.open(file, 0, -1, Options.NONE, null));
        }
    }

    @Test
    void whatIsNoFileIsAnErrorThatNamesTheUri() throws IOException {
        String text = refusal(FileException.class, "FILE_NOT_FOUND", () -> {
            throw new FileNotFoundException("No content provider");
        });
        assertTrue(text.endsWith("No content provider"), text);
        text = refusal(FileException.class, "FILE_UNREADABLE", () -> null);
        assertTrue(text.contains("copy the model"), text);
        text = refusal(FileException.class, "FILE_UNREADABLE", () -> {
            throw new SecurityException("Permission Denial");
        });
        assertTrue(text.endsWith("Permission Denial"), text);
        File pipe = new File(folder, "pipe");
        assertEquals(0, wait(new ProcessBuilder("mkfifo", pipe.getPath()).start()));
        Process writer = new ProcessBuilder("sh", "-c", "echo x > " + pipe).start();
        text = refusal(FileException.class, "FILE_UNREADABLE",
                () -> new AssetFileDescriptor(new ParcelFileDescriptor(pipe), 0, -1));
        assertTrue(text.contains("must be a regular file"), text);
        writer.destroy();
    }

    private static int wait(Process process) {
        try {
            return process.waitFor();
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    @Test
    void trimmingTakesCachesThenPagesAndLeavesSessions() {
        int[] levels = {TRIM_MEMORY_RUNNING_MODERATE, TRIM_MEMORY_RUNNING_LOW, TRIM_MEMORY_RUNNING_CRITICAL,
            TRIM_MEMORY_UI_HIDDEN, TRIM_MEMORY_BACKGROUND, TRIM_MEMORY_MODERATE, TRIM_MEMORY_COMPLETE};
        boolean[] caches = {false, true, true, true, true, true, true};
        boolean[] pages = {false, false, true, false, true, true, true};
        for (int i = 0; i < levels.length; i++) {
            assertEquals(caches[i], MemoryTrimmer.dropsCaches(levels[i]), "level " + levels[i]);
            assertEquals(pages[i], MemoryTrimmer.dropsPages(levels[i]), "level " + levels[i]);
        }
        MemoryTrimmer trimmer = new MemoryTrimmer();
        try (Model model = Model.open(DEMO.getPath());
                PrefixCache cache = new PrefixCache(64 << 20);
                Session session = model.session(Options.NONE.withPrefixCache(cache))) {
            Model closed = Model.open(DEMO.getPath());
            trimmer.add(closed);
            trimmer.add(model);
            trimmer.add(cache);
            closed.close();
            int[] text = model.tokenize("def a_function_of_many_words(one, two, three, four, five, six):\n    return one\n");
            session.setTokens(text);
            assertTrue(cache.info().bytes > 0);
            trimmer.trim(TRIM_MEMORY_RUNNING_MODERATE);
            assertTrue(cache.info().snapshots > 0);
            trimmer.trim(TRIM_MEMORY_COMPLETE);
            assertEquals(0, cache.info().snapshots);
            assertEquals(text.length, session.position());
            float[] logits = session.logits();
            session.reset();
            session.setTokens(text);
            assertTrue(Arrays.equals(logits, session.logits()));
        }
    }

    @Test
    void aHotDeviceIsHeldToHalfItsSpeed() {
        assertEquals(0, ThermalPace.pace(Float.NaN, 20));
        assertEquals(0, ThermalPace.pace(0.5f, 20));
        assertEquals(0, ThermalPace.pace(0.85f, 20));
        assertEquals(15, ThermalPace.pace(0.925f, 20), 1e-3);
        assertEquals(10, ThermalPace.pace(1f, 20), 1e-3);
        assertEquals(10, ThermalPace.pace(3f, 20), 1e-3);
        assertEquals(1, ThermalPace.pace(3f, 0.5), 1e-3);
    }

    @Test
    void heatIsAskedForOnceASecond() {
        PowerManager power = new PowerManager();
        ThermalPace pace = new ThermalPace(new Context(Collections.singletonMap(Context.POWER_SERVICE, power)));
        float[] headrooms = {0.5f, 1f, Float.NaN};
        double[] expected = {0, 10, 0};
        for (int i = 0; i < headrooms.length; i++) {
            SystemClock.now += 1000;
            power.headroom = headrooms[i];
            assertEquals(expected[i], pace.of(20), 1e-3);
            SystemClock.now += 999;
            power.headroom = 0.9f;
            assertEquals(expected[i], pace.of(20), 1e-3);
            assertEquals(i + 1, power.asked);
            SystemClock.now += 1;
        }
    }

    @Test
    void hintsNameTheThreadsAndTheTimeOfAToken() {
        PerformanceHintManager manager = new PerformanceHintManager();
        Context context = new Context(Collections.singletonMap("performance_hint", manager));
        try (Model model = Model.open(DEMO.getPath()); Session session = model.session(Options.of("threads", 2))) {
            session.generate("x", Options.of("max_new_tokens", 1), text -> true);
            PerformanceHints hints = PerformanceHints.of(context, 8);
            assertTrue(hints.areTaken());
            assertEquals(125_000_000, manager.target);
            assertTrue(manager.threads.length > 0);
            hints.report(100);
            hints.report(0); // refused, and lost
            hints.report(200);
            hints.close();
            assertEquals(Arrays.asList(100L, 200L), manager.session.actual);
            assertTrue(manager.session.isClosed);
        }
    }

    @Test
    void devicesWithoutHintsAreLeftAlone() {
        try (PerformanceHints hints = PerformanceHints.of(new Context(Collections.emptyMap()), 8)) {
            assertFalse(hints.areTaken());
            hints.report(100);
        }
    }

    @Test
    void findsTheThreadsThatCompute() {
        try (Model model = Model.open(DEMO.getPath()); Session session = model.session(Options.of("threads", 3))) {
            int before = PerformanceHints.threadsNamed("mote").length;
            try (Session other = model.session(Options.of("threads", 4))) {
                session.generate("x", Options.of("max_new_tokens", 1), text -> true);
                other.generate("x", Options.of("max_new_tokens", 1), text -> true);
                for (int i = 0; i < 1000 && PerformanceHints.threadsNamed("mote").length < 5; i++) {
                    Thread.yield(); // they name themselves when they start
                }
                assertEquals(5, PerformanceHints.threadsNamed("mote").length);
            }
            assertTrue(before <= 2);
        }
    }
}
