package ai.mote.blocking;

import ai.mote.CancelCheck;
import ai.mote.ChatStatistics;
import ai.mote.JsonText;
import ai.mote.Options;
import ai.mote.StateException;
import ai.mote.TemplateException;
import java.util.LinkedHashMap;
import java.util.Map;

/** A conversation: messages of OpenAI's form, tools, and the session that reads them. One thread at a time. */
public final class Chat extends Handle {
    /** In the order of mote_chat_field. */
    public enum Field {
        /** A JSON list of objects. */
        MESSAGES,
        TOOLS,
        DOCUMENTS,
        /** A JSON object: further variables of the template, {"enable_thinking": false}. */
        VARIABLES,
        /** The source of another template than the model's. */
        TEMPLATE,
        /** The last message's field that the reply goes on with. */
        CONTINUE_FINAL_MESSAGE,
        /** auto, none, required, or {"type": "function", "function": {"name": ..}}. */
        TOOL_CHOICE,
        /** {"type": "text" | "json_object"} or {"type": "json_schema", "json_schema": {"schema": ..}}. */
        RESPONSE_FORMAT
    }

    private final Session session;
    private final boolean ownsSession;

    Chat(long number, Session session, boolean ownsSession) {
        super(Kind.CHAT, number);
        this.session = session;
        this.ownsSession = ownsSession;
    }

    static Chat open(Model model, String instructions, String tools, Options sessionOptions) {
        Chat chat = new Chat(model.openChat(), model.session(sessionOptions), true);
        try {
            chat.set(Field.TOOLS, tools);
            if (instructions != null) {
                chat.append(message("system", instructions));
            }
            return chat;
        } catch (RuntimeException error) {
            chat.close();
            throw error;
        }
    }

    /** Closes its session too if the chat opened it. */
    @Override
    public void close() {
        if (ownsSession) {
            session.close();
        }
        super.close();
    }

    public Session session() {
        return session;
    }

    /** null: not set any more. What is wrong with a field may be told by the reply. */
    public void set(Field field, String text) {
        set(field.ordinal(), text);
    }

    /** Adds a message, a JSON object. */
    public native void append(String message);

    /** Replaces a message and drops those that followed. */
    public native void edit(int index, String message);

    /** Keeps the first messages. */
    public native void truncate(int count);

    /** A JSON list. */
    public native String messages();

    public native int numMessages();

    /** The ids of the next reply's prompt. Errors: {@link TemplateException} */
    public native int[] prompt();

    /** Begins a reply. check: may be null; asked while tool_choice or response_format are compiled. */
    public ChatTurn reply(Options options, CancelCheck check) {
        return new ChatTurn(openReply(session, options, check), this);
    }

    /** The same after the last reply was dropped. Errors: also {@link StateException} if there is nothing to reply to */
    public ChatTurn regenerate(Options options, CancelCheck check) {
        return new ChatTurn(openRegenerate(session, options, check), this);
    }

    /** The same, going on with a reply that was cut off. */
    public ChatTurn continueReply(Options options, CancelCheck check) {
        return new ChatTurn(openContinue(session, options, check), this);
    }

    /** Appends the message of a turn. */
    public native void takeReply(ChatTurn turn);

    /**
     * Sends a message of the user and reads the reply to its end; what is written of it, also before an error, is the
     * conversation's. If no reply begins, the message is not either.
     */
    public ChatStatistics send(String text, Options options, ChatListener listener) {
        try (ChatTurn turn = beginReplyTo(message("user", text), options, null)) {
            return turn.run(listener);
        }
    }

    /** Begins a reply to one message more. If none begins, the message is not the chat's. */
    public ChatTurn beginReplyTo(String message, Options options, CancelCheck check) {
        return new ChatTurn(openSend(session, message, options, check), this);
    }

    /** A message as JSON. */
    public static String message(String role, String content) {
        Map<String, String> message = new LinkedHashMap<>();
        message.put("role", role);
        message.put("content", content);
        return JsonText.of(message);
    }

    private native void set(int field, String text);

    private native long openReply(Session session, Options options, CancelCheck check);

    private native long openSend(Session session, String message, Options options, CancelCheck check);

    private native long openRegenerate(Session session, Options options, CancelCheck check);

    private native long openContinue(Session session, Options options, CancelCheck check);
}
