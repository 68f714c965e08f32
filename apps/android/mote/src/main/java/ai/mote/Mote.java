package ai.mote;

import ai.mote.blocking.NativeLibrary;

/** What belongs to no model. */
public final class Mote {
    static {
        NativeLibrary.load();
    }

    private Mote() {}

    public static native String version();

    /** A JSON object: version, commit, compiler, system, architecture, instruction sets and backends of this build. */
    public static native String describeBuild();

    /** A JSON object: the CPU, its features, and the kernels with what was chosen in this process. */
    public static native String describeKernels();

    /** A JSON list: every option with its name, scope, type, range, default and help. */
    public static native String describeOptions();

    /** A JSON object: what a file holds, also of one that does not work on this device. Errors: {@link FileException} */
    public static native String describeFile(String path);

    public static native Memory memory();

    /** Lines up to a level go to the listener; null: to standard error again, as MOTE_LOG says. */
    public static void setLog(LogListener.Level level, LogListener listener) {
        setLog(level.ordinal(), listener);
    }

    private static native void setLog(int level, LogListener listener);

    static native String finishReasonName(int number);
}
