package ai.mote.blocking;

import ai.mote.ChatStep;
import ai.mote.ToolCall;

/** Puts the steps of a call together. */
public final class ToolCallReader {
    private String name = "";
    private final StringBuilder arguments = new StringBuilder();

    /** The call that ends with this step; null: none. */
    public ToolCall read(ChatStep step) {
        switch (step.kind) {
            case CALL_BEGIN:
                name = step.text;
                arguments.setLength(0);
                return null;
            case CALL_ARGUMENTS:
                arguments.append(step.text);
                return null;
            case CALL_END:
                return new ToolCall(step.callId, name, arguments.toString());
            default:
                return null;
        }
    }
}
