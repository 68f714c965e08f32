package ai.mote;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ai.mote.blocking.Batch;
import ai.mote.blocking.BatchPiece;
import ai.mote.blocking.Beams;
import ai.mote.blocking.Chat;
import ai.mote.blocking.ChatTurn;
import ai.mote.blocking.Generation;
import ai.mote.blocking.Grammar;
import ai.mote.blocking.Model;
import ai.mote.blocking.PrefixCache;
import ai.mote.blocking.Session;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class BlockingTest {
    static final String DEMO = System.getProperty("mote.demo");
    static final String PROMPT = "import os\n\n\ndef ";
    static final Options GREEDY = Options.of("temperature", 0).with("max_new_tokens", 24);
    static final Options ENDLESS = Options.of("ignore_eos", true).with("max_new_tokens", 100_000);
    static final Options SHIFTED = Options.of("overflow", "shift");

    static Model model;

    @TempDir Path folder;

    @BeforeAll
    static void open() {
        model = Model.open(DEMO);
    }

    @AfterAll
    static void close() {
        model.close();
    }

    static String greedy(Session session) {
        StringBuilder text = new StringBuilder();
        session.generate(PROMPT, GREEDY, piece -> {
            text.append(piece);
            return true;
        });
        return text.toString();
    }

    @Test
    void textIsExact() {
        String[] texts = {"", "plain", "a\u0000b\u0000", "\ud83d\ude00 and \u00e9\u4e2d\uffff", "\ud83d\ude00\ud83d\ude00"};
        for (String text : texts) {
            assertEquals(text, model.detokenize(model.tokenize(text, false, false), false));
        }
        String lone = "\ud83d x \ude00 \ude00\ud83d";
        assertEquals(lone.replaceAll("[\ud83d\ude00]", "\ufffd").length(), lone.length());
        assertEquals("\ufffd x \ufffd \ufffd\ufffd", model.detokenize(model.tokenize(lone, false, false), false));
    }

    @Test
    void messagesKeepEveryCharacter() {
        String text = "\"quoted\" \\ \u0000 \u001f \n \ud83d\ude00 \u2028";
        try (Chat chat = model.chat(text, null, Options.NONE)) {
            assertEquals("[" + Chat.message("system", text) + "]", chat.messages());
        }
    }

    @Test
    void streamsWhatTheTokensSpell() {
        try (Session session = model.session(); Generation generation = session.generation(PROMPT, GREEDY)) {
            StringBuilder text = new StringBuilder();
            List<Integer> ids = new ArrayList<>();
            Piece piece;
            do {
                piece = generation.next();
                text.append(piece.text);
                if (piece.id >= 0) {
                    ids.add(piece.id);
                }
            } while (!piece.isLast());
            int[] array = ids.stream().mapToInt(Integer::intValue).toArray();
            assertEquals(model.detokenize(array, true), text.toString());
            assertEquals(FinishReason.LENGTH, piece.finishReason);
            assertEquals(24, generation.statistics().generatedTokens);
            assertTrue(generation.next().isLast());
        }
    }

    @Test
    void givesLogprobs() {
        Options options = GREEDY.with("top_logprobs", 3);
        try (Session session = model.session(); Generation generation = session.generation(PROMPT, options)) {
            Piece piece = generation.next();
            assertEquals(3, piece.topLogprobs.length);
            assertEquals(piece.id, piece.topLogprobs[0].id);
            assertEquals(piece.logprob, piece.topLogprobs[0].logprob);
        }
    }

    @Test
    void logitsAgreeHoweverTheyAreAskedFor() {
        int[] ids = model.tokenize(PROMPT);
        int[] most = Arrays.copyOf(ids, ids.length - 1);
        int last = ids[ids.length - 1];
        try (Session session = model.session()) {
            float[] prefilled = session.prefill(ids);
            assertEquals(model.info().vocabSize, prefilled.length);
            assertArrayEquals(prefilled, session.logits());
            session.reset();
            session.append(most);
            assertArrayEquals(prefilled, session.decode(last));
            session.rewind(0);
            session.moveTo("cpu");
            assertEquals("cpu", session.backend());
            assertEquals("", session.movedBecause());
            float[] all = session.verify(ids);
            assertArrayEquals(prefilled, Arrays.copyOfRange(all, all.length - prefilled.length, all.length));
            session.reset();
            assertEquals(ids.length - 1, session.score(ids).length);
            assertArrayEquals(ids, session.tokens());
            assertEquals(ids.length, session.position());
            assertEquals(ids.length, session.info().position);
        }
    }

    @Test
    void forksRewindsSavesAndRestores() {
        String file = folder.resolve("saved \u00e9\ud83d\ude00.session").toString();
        try (Session session = model.session(); Session restored = model.session()) {
            session.append(PROMPT);
            long position = session.position();
            session.save(file);
            restored.restore(file);
            try (Session fork = session.fork()) {
                assertArrayEquals(session.logits(), fork.logits());
                fork.append("more");
                assertTrue(fork.position() > position);
            }
            assertArrayEquals(session.logits(), restored.logits());
            session.append("other text");
            session.rewind(position);
            assertArrayEquals(restored.logits(), session.logits());
            assertEquals(position, session.setTokens(session.tokens()));
            assertThrows(SessionFileException.class, () -> session.restore(DEMO));
            assertArrayEquals(restored.logits(), session.logits());
            assertThrows(FileException.class, () -> session.save(folder.resolve("no/folder").toString()));
        }
    }

    @Test
    void aSessionOutlivesItsModel() {
        Model other = Model.open(DEMO);
        try (Session session = other.session()) {
            other.close();
            assertFalse(greedy(session).isEmpty());
        }
    }

    @Test
    void stopsFromAnotherThread() throws Exception {
        try (Session session = model.session(SHIFTED)) {
            AtomicReference<Thread> stopper = new AtomicReference<>();
            Statistics statistics = session.generate(PROMPT, ENDLESS, text -> {
                if (stopper.get() == null) {
                    stopper.set(new Thread(session::cancel));
                    stopper.get().start();
                }
                return true;
            });
            stopper.get().join();
            assertEquals(FinishReason.CANCELLED, statistics.finishReason);
            assertFalse(greedy(session).isEmpty());
        }
    }

    @Test
    void stopWhenIdleEndsTheNextCallOnly() {
        try (Session session = model.session()) {
            session.cancel();
            assertThrows(CancelledException.class, () -> session.append(PROMPT));
            session.cancel();
            session.forgetCancel();
            session.append(PROMPT);
        }
    }

    @Test
    void closingWhileGeneratingEndsTheText() throws Exception {
        Session session = model.session(SHIFTED);
        AtomicReference<Object> result = new AtomicReference<>();
        Thread generating = new Thread(() -> {
            try {
                result.set(session.generate(PROMPT, ENDLESS, text -> {
                    synchronized (result) {
                        result.notifyAll();
                    }
                    return true;
                }));
            } catch (RuntimeException error) {
                result.set(error);
            }
        });
        synchronized (result) {
            generating.start();
            result.wait();
        }
        session.close();
        generating.join(10_000);
        assertFalse(generating.isAlive());
        assertEquals(FinishReason.CANCELLED, ((Statistics) result.get()).finishReason);
    }

    @Test
    void twoCallsAtOnceSaySo() {
        try (Session session = model.session(); Generation first = session.generation(PROMPT, GREEDY)) {
            first.next();
            session.append(model.tokenize("x", false, false));
            assertThrows(StateException.class, first::next);
        }
    }

    @Test
    void callbacksMayCallMote() {
        try (Session session = model.session(); Session other = model.session()) {
            int[] calls = {0};
            session.generate(PROMPT, GREEDY, text -> {
                other.append(text);
                model.tokenize(text);
                calls[0]++;
                return true;
            });
            assertTrue(calls[0] > 0);
            assertTrue(other.position() > 0);
        }
    }

    @Test
    void callbacksMayThrowStopAndClose() {
        try (Session session = model.session()) {
            RuntimeException mine = new RuntimeException("mine");
            assertSame(mine, assertThrows(RuntimeException.class, () -> session.generate(PROMPT, GREEDY, text -> {
                throw mine;
            })));
            Statistics statistics = session.generate(PROMPT, ENDLESS, text -> false);
            assertEquals(FinishReason.CANCELLED, statistics.finishReason);
            assertEquals(FinishReason.CANCELLED, session.generate(PROMPT, ENDLESS, text -> {
                session.close();
                return true;
            }).finishReason);
        }
    }

    @Test
    void tellsProgressAndMayBeCancelled() {
        double[] last = {0};
        Model.open(DEMO, Options.NONE, fraction -> {
            assertTrue(fraction >= last[0] && fraction <= 1);
            last[0] = fraction;
            return true;
        }).close();
        assertEquals(1, last[0]);
        assertThrows(CancelledException.class, () -> Model.open(DEMO, Options.NONE, fraction -> false));
        RuntimeException mine = new RuntimeException("mine");
        assertSame(mine, assertThrows(RuntimeException.class, () -> Model.open(DEMO, Options.NONE, fraction -> {
            throw mine;
        })));
    }

    @Test
    void chatsOverSeveralTurns() {
        try (Chat chat = model.chat("You write Python.", null, Options.NONE)) {
            StringBuilder text = new StringBuilder();
            Options options = Options.of("seed", 2).with("max_new_tokens", 48);
            ChatStatistics first = chat.send("Hello", options, piece -> {
                text.append(piece);
                return true;
            });
            assertEquals(0, first.keptTokens);
            assertTrue(chat.messages().contains(text));
            assertEquals(3, chat.numMessages());
            ChatStatistics second = chat.send("And again", options, piece -> true);
            assertTrue(second.keptTokens >= first.promptTokens, second.keptTokens + " of " + first.promptTokens);
            try (ChatTurn turn = chat.regenerate(options, null)) {
                turn.run(piece -> true);
            }
            assertEquals(5, chat.numMessages());
            chat.truncate(1);
            assertEquals(FinishReason.CANCELLED, chat.send("Hello", options, piece -> false).generation.finishReason);
            assertEquals(3, chat.numMessages());
            assertNotNull(chat.prompt());
        }
    }

    @Test
    void followsGrammars() {
        try (Grammar grammar = model.grammar(Syntax.REGEX, "(yes|no)", null); Session session = model.session()) {
            StringBuilder text = new StringBuilder();
            session.generate(PROMPT, GREEDY.withGrammar(grammar), piece -> text.append(piece) != null);
            assertTrue(text.toString().matches("yes|no"), text.toString());
        }
        assertThrows(ArgumentException.class, () -> model.grammar(Syntax.REGEX, "(", null));
        assertThrows(CancelledException.class, () -> model.grammar(Syntax.REGEX, "(a|b|[c-z]{1,50}){1,50}x", () -> true));
    }

    @Test
    void batchesGiveWhatEachWouldHaveAlone() {
        int[] ids = model.tokenize(PROMPT);
        String alone;
        try (Session session = model.session()) {
            alone = greedy(session);
        }
        try (Batch batch = model.batch(0, Options.NONE); Session session = model.session()) {
            session.append(Arrays.copyOf(ids, 2));
            long[] sequences = {batch.add(null, ids, GREEDY),
                    batch.addFork(session, Arrays.copyOfRange(ids, 2, ids.length), GREEDY),
                    batch.add(session, Arrays.copyOfRange(ids, 2, ids.length), GREEDY)};
            StringBuilder[] texts = {new StringBuilder(), new StringBuilder(), new StringBuilder()};
            assertEquals(3, batch.numSequences());
            assertThrows(StateException.class, () -> session.append(ids));
            while (batch.numSequences() > 0) {
                for (BatchPiece piece : batch.step()) {
                    assertNull(piece.error);
                    texts[Arrays.binarySearch(sequences, piece.sequence)].append(piece.piece.text);
                    assertEquals(piece.piece.isLast(), piece.statistics != null);
                }
            }
            for (StringBuilder text : texts) {
                assertEquals(alone, text.toString());
            }
            assertThrows(ArgumentException.class, () -> batch.add(null, new int[] {-1}, GREEDY));
        }
    }

    @Test
    void draftsAndBeamsAndPrefixCaches() {
        try (Session session = model.session(); Model draft = Model.open(DEMO)) {
            String alone = greedy(session);
            session.reset();
            session.setDraftModel(draft);
            assertEquals(alone, greedy(session));
            session.setDraftModel(null);
            session.reset();
            try (Beams beams = session.beamSearch(model.tokenize(PROMPT), Options.of("num_beams", 3).with("max_new_tokens", 8))) {
                assertTrue(beams.size() > 0);
                assertTrue(beams.ids(0).length > 0);
                assertTrue(beams.score(0) <= 0);
                assertThrows(ArgumentException.class, () -> beams.ids(-1));
            }
        }
        try (PrefixCache cache = new PrefixCache(1 << 24)) {
            String text = String.join(" ", Collections.nCopies(40, "import os"));
            for (int i = 0; i < 2; i++) {
                try (Session session = model.session(Options.NONE.withPrefixCache(cache))) {
                    session.generate(text, GREEDY, piece -> true);
                }
            }
            assertTrue(cache.info().hits > 0);
            cache.clear();
            assertEquals(0, cache.info().snapshots);
        }
    }

    @Test
    void opensDescriptorsAndBuffers() throws Exception {
        byte[] whole = Files.readAllBytes(Paths.get(DEMO));
        File packed = folder.resolve("packed").toFile();
        try (RandomAccessFile file = new RandomAccessFile(packed, "rw")) {
            file.write(new byte[4096]);
            file.write(whole);
            file.write(new byte[100]);
        }
        String expected;
        try (Session session = model.session()) {
            expected = greedy(session);
        }
        Model part;
        try (FileInputStream file = new FileInputStream(packed)) {
            part = Model.open(numberOf(file.getFD()), 4096, whole.length, Options.NONE, null);
            int descriptor = numberOf(file.getFD());
            assertThrows(MoteException.class, () -> Model.open(descriptor, 0, whole.length, Options.NONE, null));
            assertThrows(MoteException.class, () -> Model.open(descriptor, -1, 5, Options.NONE, null));
        }
        try (Session session = part.session()) {
            part.close();
            assertEquals(expected, greedy(session));
        }
        ByteBuffer bytes = ByteBuffer.allocateDirect(whole.length).put(whole);
        try (Model inMemory = Model.open(bytes, Options.NONE, null); Session session = inMemory.session()) {
            bytes = null;
            System.gc();
            assertEquals(expected, greedy(session));
        }
        assertThrows(IllegalArgumentException.class, () -> Model.open(ByteBuffer.wrap(whole), Options.NONE, null));
        assertThrows(MoteException.class, () -> Model.open(ByteBuffer.allocateDirect(64), Options.NONE, null));
        assertThrows(MoteException.class, () -> Model.open(-1, 0, -1, Options.NONE, null));
    }

    private static int numberOf(FileDescriptor descriptor) throws ReflectiveOperationException {
        Field number = FileDescriptor.class.getDeclaredField("fd");
        number.setAccessible(true);
        return number.getInt(descriptor);
    }

    @Test
    void forgottenHandlesAreClosed() throws Exception {
        int before = ai.mote.blocking.Forgotten.numOpen();
        for (int i = 0; i < 20; i++) {
            model.session().tokenize("x");
        }
        for (int i = 0; i < 100 && ai.mote.blocking.Forgotten.numOpen() > before; i++) {
            System.gc();
            Thread.sleep(20);
        }
        assertTrue(ai.mote.blocking.Forgotten.numOpen() <= before);
    }

    @Test
    void aTextGoesOnWithoutItsSessionAndBatch() throws Exception {
        String expected;
        try (Session session = model.session()) {
            expected = greedy(session);
        }
        for (boolean hasBatch : new boolean[] {false, true}) {
            try (Generation generation = textOfForgotten(hasBatch)) {
                StringBuilder text = new StringBuilder(generation.next().text);
                for (int i = 0; i < 5; i++) {
                    System.gc();
                    Thread.sleep(10);
                }
                assertEquals(FinishReason.LENGTH, generation.run(piece -> text.append(piece) != null).finishReason);
                assertEquals(expected, text.toString());
            }
        }
    }

    private static Generation textOfForgotten(boolean hasBatch) {
        Session session = model.session();
        if (hasBatch) {
            session.setBatch(model.batch(0, Options.NONE));
        }
        return session.generation(PROMPT, GREEDY);
    }

    // Java has files of its own mapped, and needs the signal that their lost pages give.
    @Test
    void pagesThatJavaLosesAreStillAnErrorOfJava() throws Exception {
        Path file = folder.resolve("mapped");
        Files.write(file, new byte[1 << 16]);
        InternalError error = null;
        // The error comes some instructions after the access, and may come again.
        for (int i = 0; i < 10; i++) {
            try {
                touchLostPage(file);
                Thread.sleep(1);
            } catch (InternalError lost) {
                error = lost;
            }
        }
        assertNotNull(error);
    }

    private static void touchLostPage(Path file) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            channel.write(ByteBuffer.allocate(1 << 16), 0);
            MappedByteBuffer mapped = channel.map(FileChannel.MapMode.READ_ONLY, 0, 1 << 16);
            channel.truncate(0);
            mapped.get(1 << 15);
        }
    }

    @Test
    void aFileThatBecomesShorterIsAnError() throws Exception {
        Path file = folder.resolve("shrinking.mote");
        Files.copy(Paths.get(DEMO), file);
        try (Model shrinking = Model.open(file.toString()); Session session = shrinking.session()) {
            try (RandomAccessFile opened = new RandomAccessFile(file.toFile(), "rw")) {
                opened.setLength(4096);
            }
            FileException error = assertThrows(FileException.class, () -> session.append(PROMPT));
            assertEquals("FILE_CHANGED", error.codeName);
        }
    }

    @Test
    void logLinesGoToAListener() throws Exception {
        Path unaligned = folder.resolve("unaligned");
        byte[] whole = Files.readAllBytes(Paths.get(DEMO));
        Files.write(unaligned, ByteBuffer.allocate(whole.length + 1).put((byte) 0).put(whole).array());
        List<String> lines = Collections.synchronizedList(new ArrayList<>());
        Mote.setLog(LogListener.Level.INFO, (level, line) -> {
            lines.add(level + " " + line);
            throw new RuntimeException("dropped");
        });
        try (FileInputStream file = new FileInputStream(unaligned.toFile())) {
            Model.open(numberOf(file.getFD()), 1, -1, Options.NONE, null).close();
        } finally {
            Mote.setLog(LogListener.Level.OFF, null);
        }
        assertTrue(lines.stream().anyMatch(line -> line.startsWith("INFO ") && line.contains("64")), lines.toString());
    }

    @Test
    void describesItself() {
        assertTrue(Mote.describeBuild().contains(Mote.version()));
        assertTrue(Mote.describeOptions().contains("\"top_p\""));
        assertTrue(Mote.describeKernels().contains("\"kernels\""));
        assertTrue(Mote.describeFile(DEMO).contains("qwen3"));
        assertTrue(model.describe().contains("qwen3"));
        assertTrue(model.generationConfig().contains("eos_token_id"));
        assertFalse(model.chatTemplate().isEmpty());
        assertTrue(Mote.memory().peakRssBytes > 0);
        model.checkSegments();
        try (Session session = model.session()) {
            assertTrue(session.checkGolden().replace(" ", "").contains("\"passed\":true"));
            session.startProfile();
            session.append(PROMPT);
            assertTrue(session.stopProfile().contains("traceEvents"));
        }
    }

    @Test
    void enumsAreThoseOfTheHeader() {
        for (FinishReason reason : FinishReason.values()) {
            assertEquals(reason.name().toLowerCase(), Mote.finishReasonName(reason.ordinal()));
        }
        assertNull(Mote.finishReasonName(FinishReason.values().length));
    }
}
