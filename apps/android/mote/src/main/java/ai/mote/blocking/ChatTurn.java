package ai.mote.blocking;

import ai.mote.ChatStatistics;
import ai.mote.ChatStep;
import ai.mote.ToolCall;

/** A reply while it is written. Takes one call at a time, together with its session. */
public final class ChatTurn extends Handle {
    private final Chat chat;

    ChatTurn(long number, Chat chat) {
        super(Kind.CHAT_TURN, number);
        this.chat = chat;
    }

    /** At most one step of the model. After DONE it comes again. */
    public native ChatStep next();

    /** The step under way, or the next one, ends the turn as cancelled. From any thread. */
    public native void cancel();

    /** Ends the turn here: the message is what was written. */
    public native void stop();

    /** What was written so far, a JSON object to append to the conversation. */
    public native String message();

    public native ChatStatistics statistics();

    /** All that is left; the chat then has the reply. */
    public ChatStatistics run(ChatListener listener) {
        try {
            ToolCallReader calls = new ToolCallReader();
            ChatStep step;
            do {
                step = next();
                if (!tell(listener, step, calls.read(step))) {
                    cancel();
                }
            } while (step.kind != ChatStep.Kind.DONE);
            return statistics();
        } finally {
            takeReply();
        }
    }

    /** Ends the turn: what was written is the chat's, unless either is closed. */
    public void takeReply() {
        if (!isClosed() && !chat.isClosed()) {
            stop();
            chat.takeReply(this);
        }
    }

    private static boolean tell(ChatListener listener, ChatStep step, ToolCall call) {
        switch (step.kind) {
            case CONTENT:
                return listener.onContent(step.text);
            case REASONING:
                return listener.onReasoning(step.text);
            default:
                return call == null || listener.onToolCall(call);
        }
    }
}
