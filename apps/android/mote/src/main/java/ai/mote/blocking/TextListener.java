package ai.mote.blocking;

/** Told what a text adds, by the thread that generates. */
public interface TextListener {
    /** Whole characters. Returns whether to go on; if not, the text ends as cancelled. */
    boolean onText(String text);
}
