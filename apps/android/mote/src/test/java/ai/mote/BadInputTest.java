package ai.mote;

import static ai.mote.BlockingTest.DEMO;
import static ai.mote.BlockingTest.ENDLESS;
import static ai.mote.BlockingTest.GREEDY;
import static ai.mote.BlockingTest.PROMPT;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ai.mote.blocking.Chat;
import ai.mote.blocking.Generation;
import ai.mote.blocking.Model;
import ai.mote.blocking.Session;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Each is an exception of its own with the C API's sentence. Those of the store are in StoreTest. */
class BadInputTest {
    private static Model model;

    @TempDir Path folder;

    @BeforeAll
    static void open() {
        model = Model.open(DEMO);
    }

    @AfterAll
    static void close() {
        model.close();
    }

    @Test
    void missingFile() {
        FileException error = assertThrows(FileException.class, () -> Model.open("/nowhere/\u00e9.mote"));
        assertEquals("FILE_NOT_FOUND", error.codeName);
        assertTrue(error.getMessage().contains("/nowhere/\u00e9.mote"), error.getMessage());
        assertThrows(ArgumentException.class, () -> Model.open("a\u0000b"));
        assertThrows(NullPointerException.class, () -> Model.open(null));
    }

    @Test
    void notAModel() throws Exception {
        Path file = folder.resolve("text.mote");
        Files.write(file, "not a model".getBytes());
        assertThrows(ProgramException.class, () -> Model.open(file.toString()));
        assertThrows(FileException.class, () -> Model.open(folder.toString()));
        byte[] whole = Files.readAllBytes(Paths.get(DEMO));
        Files.write(file, Arrays.copyOf(whole, whole.length / 2));
        assertThrows(MoteException.class, () -> Model.open(file.toString()));
        assertThrows(MoteException.class, () -> model.adapter(DEMO));
    }

    @Test
    void noPermission() throws Exception {
        Path file = folder.resolve("secret.mote");
        Files.copy(Paths.get(DEMO), file);
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("---------"));
        if (Files.isReadable(file)) { // root may read anything
            Model.open(file.toString()).close();
        } else {
            FileException error = assertThrows(FileException.class, () -> Model.open(file.toString()));
            assertEquals("FILE_UNREADABLE", error.codeName);
        }
    }

    @Test
    void tooLittleMemory() {
        try (Model longest = Model.open(System.getProperty("mote.files") + "/long.mote")) {
            Options all = Options.of("context_length", Integer.MAX_VALUE);
            ResourceException error = assertThrows(ResourceException.class, () -> longest.session(all));
            assertTrue(error.getMessage().contains("choose a smaller context_length"), error.getMessage());
            longest.session(Options.of("context_length", 64)).close();
        }
    }

    @Test
    void placesThatCannotBeWritten() {
        try (Session session = model.session()) {
            session.append(PROMPT);
            FileException error =
                    assertThrows(FileException.class, () -> session.save(folder.resolve("no/folder").toString()));
            assertEquals("FILE_UNWRITABLE", error.codeName);
        }
    }

    @Test
    void unknownOptionsAndValuesOutOfRange() {
        assertThrows(ArgumentException.class, () -> model.session(Options.of("no_such_option", 1)));
        assertThrows(ArgumentException.class, () -> model.session(Options.of("top_p", 0.5)));
        assertThrows(ArgumentException.class, () -> model.session(Options.of("context_length", -1)));
        assertThrows(IllegalArgumentException.class, () -> Options.of("top_p", Double.NaN));
        assertThrows(IllegalArgumentException.class, () -> Options.of("top_p", new Object()));
        assertThrows(ArgumentException.class, () -> model.embedder(Options.NONE));
        assertThrows(ArgumentException.class, model::embeddingConfig);
        try (Session session = model.session()) {
            ArgumentException error =
                    assertThrows(ArgumentException.class, () -> session.generation(PROMPT, Options.of("top_p", 2)));
            assertTrue(error.getMessage().startsWith("top_p = 2: must be "), error.getMessage());
        }
    }

    @Test
    void tokensAndPositionsThatAreNone() {
        try (Session session = model.session(Options.of("context_length", 32))) {
            assertThrows(ArgumentException.class, () -> session.append(new int[] {-1}));
            assertThrows(ArgumentException.class, () -> session.append(new int[] {1 << 30}));
            assertThrows(ContextFullException.class, () -> session.append(new int[100]));
            assertThrows(ArgumentException.class, () -> session.rewind(7));
            assertThrows(ArgumentException.class, () -> session.moveTo("npu"));
            assertThrows(ArgumentException.class, session::logits);
            assertThrows(NullPointerException.class, () -> session.append((int[]) null));
            assertThrows(NullPointerException.class, () -> session.append((String) null));
        }
    }

    @Test
    void emptyMessages() {
        try (Chat chat = model.chat(null, null, Options.NONE)) {
            chat.send("", GREEDY, text -> true);
            assertEquals(2, chat.numMessages(), "a message without text is one");
            chat.set(Chat.Field.MESSAGES, null);
            assertThrows(StateException.class, () -> chat.regenerate(GREEDY, null));
            assertThrows(ArgumentException.class, () -> chat.append(""));
            assertThrows(ArgumentException.class, () -> chat.append("[]"));
            assertThrows(ArgumentException.class, () -> chat.edit(-1, Chat.message("user", "x")));
            assertThrows(NullPointerException.class, () -> chat.append(null));
            assertEquals("[]", chat.messages());
        }
    }

    @Test
    void templatesThatRefuse() {
        try (Chat chat = model.chat(null, null, Options.NONE)) {
            chat.set(Chat.Field.TEMPLATE, "{{ raise_exception('no') }}");
            assertThrows(TemplateException.class, () -> chat.send("Hello", GREEDY, text -> true));
            assertEquals(0, chat.numMessages());
        }
    }

    @Test
    void toolsWithInvalidSchemas() {
        for (String tools : new String[] {"{not json", "{}", "7"}) {
            try (Chat chat = model.chat(null, tools, Options.NONE)) {
                assertThrows(MoteException.class, () -> chat.send("Hello", GREEDY, text -> true));
                assertEquals(0, chat.numMessages());
            }
        }
        String invalid = "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"type\": 7}}}]";
        try (Chat chat = model.chat(null, invalid, Options.NONE)) {
            chat.set(Chat.Field.TOOL_CHOICE, "required");
            assertThrows(ArgumentException.class, () -> chat.send("Hello", GREEDY, text -> true));
            assertEquals("[]", chat.messages());
        }
    }

    @Test
    void callsAfterClose() {
        Model other = Model.open(DEMO);
        Session session = other.session();
        Generation generation = session.generation(PROMPT, GREEDY);
        Chat chat = other.chat(null, null, Options.NONE);
        for (int i = 0; i < 2; i++) {
            generation.close();
            session.close();
            chat.close();
            other.close();
        }
        IllegalStateException error = assertThrows(IllegalStateException.class, other::info);
        assertEquals("the model is closed", error.getMessage());
        assertThrows(IllegalStateException.class, session::tokens);
        assertThrows(IllegalStateException.class, session::cancel);
        assertThrows(IllegalStateException.class, () -> session.generation(PROMPT, GREEDY));
        assertThrows(IllegalStateException.class, generation::next);
        assertThrows(IllegalStateException.class, chat::messages);
        assertThrows(IllegalStateException.class, () -> chat.session().tokens());
        assertTrue(other.isClosed());
    }

    @Test
    void closingFromACallback() {
        Model other = Model.open(DEMO);
        Session session = other.session();
        assertEquals(FinishReason.CANCELLED, session.generate(PROMPT, ENDLESS, text -> {
            session.close();
            other.close();
            assertThrows(IllegalStateException.class, session::tokens);
            return true;
        }).finishReason);
        Chat chat = model.chat(null, null, Options.NONE);
        assertEquals(FinishReason.CANCELLED, chat.send("Hello", ENDLESS, text -> {
            chat.close();
            return true;
        }).generation.finishReason);
        assertThrows(IllegalStateException.class, chat::messages);
    }
}
