package ai.mote.blocking;

import ai.mote.ToolCall;

/** Told what a reply adds, by the thread that reads it. Each returns whether to go on; if not, the reply ends as cancelled. */
public interface ChatListener {
    boolean onContent(String text);

    default boolean onReasoning(String text) {
        return true;
    }

    default boolean onToolCall(ToolCall call) {
        return true;
    }
}
