package ai.mote;

/** Takes the lines of Mote's log, from any thread and by several at the same time. What it throws is dropped. */
public interface LogListener {
    /** In the order of mote_log_level. */
    enum Level {
        OFF,
        ERROR,
        INFO,
        DEBUG
    }

    void onLine(Level level, String line);
}
