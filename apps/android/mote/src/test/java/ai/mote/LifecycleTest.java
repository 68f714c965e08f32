package ai.mote;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ai.mote.blocking.Chat;
import ai.mote.blocking.Forgotten;
import ai.mote.blocking.Model;
import ai.mote.blocking.PrefixCache;
import ai.mote.blocking.Session;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Threads that open, use, cancel and close what they share, in any order. -Dmote.sequences and -Dmote.seed say how. */
class LifecycleTest {
    private static final int NUM_THREADS = 8;
    private static final int NUM_SHARED = 6;
    private static final String PROMPT = "import os\n\n\ndef ";
    private static final Options SHORT = Options.of("temperature", 0).with("max_new_tokens", 6);
    private static final int NUM_SEQUENCES = Integer.getInteger("mote.sequences", 400);
    private static final long SEED = Long.getLong("mote.seed", 1);

    @TempDir Path folder;

    private final AtomicReferenceArray<Model> models = new AtomicReferenceArray<>(2);
    private final AtomicReferenceArray<Session> sessions = new AtomicReferenceArray<>(NUM_SHARED);
    private final AtomicReferenceArray<Chat> chats = new AtomicReferenceArray<>(NUM_SHARED);
    private final AtomicLong numTexts = new AtomicLong();
    private PrefixCache cache;
    private String expected;

    @Test
    void anyOrderFromManyThreadsGivesTheRightTextOrAnError() throws Exception {
        int before = Forgotten.numOpen();
        cache = new PrefixCache(1 << 22);
        for (int i = 0; i < models.length(); i++) {
            models.set(i, Model.open(BlockingTest.DEMO));
        }
        try (Session session = open(models.get(0))) {
            expected = text(session);
        }
        ExecutorService threads = Executors.newFixedThreadPool(NUM_THREADS);
        List<Future<?>> runs = new ArrayList<>();
        for (int i = 0; i < NUM_SEQUENCES; i++) {
            Random random = new Random(SEED + i);
            runs.add(threads.submit(() -> sequence(random)));
        }
        for (Future<?> run : runs) {
            run.get(600, TimeUnit.SECONDS);
        }
        threads.shutdown();
        closeAll();
        assertTrue(numTexts.get() > NUM_SEQUENCES / 4, numTexts + " texts were compared");
        System.gc();
        for (int i = 0; i < 100 && Forgotten.numOpen() > before; i++) {
            Thread.sleep(20);
            System.gc();
        }
        assertEquals(before, Forgotten.numOpen());
    }

    private static Session open(Model model) {
        return model.session(Options.of("context_length", 128).with("num_threads", 1));
    }

    private static String text(Session session) {
        StringBuilder text = new StringBuilder();
        session.generate(PROMPT, SHORT, piece -> text.append(piece) != null);
        return text.toString();
    }

    private void sequence(Random random) {
        for (int step = 0; step < 8; step++) {
            try {
                act(random);
            } catch (IllegalStateException | StateException | CancelledException | ContextFullException expected) {
                // Another thread closed, uses or cancelled it, or its context is full.
            } catch (SessionFileException | FileException expected) {
                // Nothing was saved yet.
            } catch (ArgumentException error) {
                // A session that was reset meanwhile has no such position, nor logits.
                assertTrue(error.getMessage().matches("position = .*|there are no logits .*"), error.getMessage());
            }
        }
    }

    private void act(Random random) {
        int at = random.nextInt(NUM_SHARED);
        Session session = sessions.get(at);
        Chat chat = chats.get(at);
        Model model = models.get(random.nextInt(models.length()));
        switch (random.nextInt(16)) {
            case 0:
                replace(sessions, at, model.session(Options.of("context_length", 96).withPrefixCache(cache)));
                return;
            case 1:
                replace(sessions, at, open(model));
                return;
            case 2:
                replace(chats, at, model.chat("You write Python.", null, Options.of("context_length", 256)));
                return;
            case 3:
                if (session != null) {
                    replace(sessions, random.nextInt(NUM_SHARED), session.fork());
                }
                return;
            case 4:
                replace(models, random.nextInt(models.length()), Model.open(BlockingTest.DEMO));
                return;
            case 5:
                cache.clear();
                return;
            case 6:
            case 7:
                try (Session own = open(model)) {
                    assertEquals(expected, text(own));
                    numTexts.incrementAndGet();
                }
                return;
            case 8:
                if (chat != null) {
                    chat.send("Hello", SHORT, piece -> random.nextInt(8) > 0);
                }
                return;
            case 9:
                if (chat != null) {
                    chat.session().cancel();
                }
                return;
            default:
                if (session != null) {
                    useShared(random, session, at);
                }
        }
    }

    private void useShared(Random random, Session session, int at) {
        String file = folder.resolve(at + ".session").toString();
        switch (random.nextInt(8)) {
            case 0:
                session.append(PROMPT);
                return;
            case 1:
                session.generate(PROMPT, SHORT, piece -> random.nextInt(8) > 0);
                return;
            case 2:
                session.cancel();
                return;
            case 3:
                session.save(file);
                return;
            case 4:
                session.restore(file);
                return;
            case 5:
                session.rewind(random.nextInt(10));
                return;
            case 6:
                session.logits();
                return;
            default:
                session.close();
        }
    }

    private static <T extends AutoCloseable> void replace(AtomicReferenceArray<T> shared, int at, T opened) {
        T before = shared.getAndSet(at, opened);
        // Some are forgotten instead.
        if (before != null && at % 3 > 0) {
            closeQuietly(before);
        }
    }

    private static void closeQuietly(AutoCloseable handle) {
        try {
            handle.close();
        } catch (Exception error) {
            throw new AssertionError(error);
        }
    }

    private void closeAll() {
        for (AtomicReferenceArray<? extends AutoCloseable> shared : List.of(models, sessions, chats)) {
            for (int i = 0; i < shared.length(); i++) {
                if (shared.get(i) != null) {
                    closeQuietly(shared.get(i));
                }
                shared.set(i, null);
            }
        }
        cache.close();
    }
}
