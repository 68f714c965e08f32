package ai.mote;

/** A call that a reply asks for. */
public final class ToolCall {
    public final String id;
    public final String name;
    /** A JSON object. */
    public final String arguments;

    public ToolCall(String id, String name, String arguments) {
        this.id = id;
        this.name = name;
        this.arguments = arguments;
    }

    @Override
    public String toString() {
        return name + arguments;
    }
}
