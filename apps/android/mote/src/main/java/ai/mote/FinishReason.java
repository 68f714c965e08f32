package ai.mote;

/** Why a text ended, in the order of mote_finish_reason. */
public enum FinishReason {
    EOS,
    LENGTH,
    STOP_STRING,
    CANCELLED,
    STOP_TOKEN,
    TIME;

    private static final FinishReason[] ALL = values();

    /** null for a text that goes on. */
    static FinishReason of(int number) {
        return number < 0 || number >= ALL.length ? null : ALL[number];
    }
}
