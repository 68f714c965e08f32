package ai.mote;

/** What Mote refuses or fails at. The message is the sentence of the C API. */
public class MoteException extends RuntimeException {
    /** A number of mote_error_code. */
    public final int code;
    /** Its name there, such as "FILE_NOT_FOUND"; "" for one that has none. */
    public final String codeName;

    MoteException(int code, String codeName, String message) {
        super(message);
        this.code = code;
        this.codeName = codeName;
    }

    /** The exception that belongs to a code. */
    public static MoteException of(int code, String codeName, String message) {
        switch (codeName) {
            case "FILE_NOT_FOUND":
            case "FILE_UNREADABLE":
            case "FILE_CHANGED":
            case "FILE_UNWRITABLE":
                return new FileException(code, codeName, message);
            case "INVALID_PROGRAM":
            case "UNSUPPORTED_VERSION":
            case "UNSUPPORTED_OP":
                return new ProgramException(code, codeName, message);
            case "INVALID_SESSION":
                return new SessionFileException(code, codeName, message);
            case "UNSUPPORTED_BACKEND":
                return new BackendException(code, codeName, message);
            case "INVALID_TOKENIZER":
                return new TokenizerException(code, codeName, message);
            case "TEMPLATE":
                return new TemplateException(code, codeName, message);
            case "INVALID_ARGUMENT":
                return new ArgumentException(code, codeName, message);
            case "CONTEXT_FULL":
                return new ContextFullException(code, codeName, message);
            case "INVALID_STATE":
                return new StateException(code, codeName, message);
            case "OUT_OF_MEMORY":
                return new ResourceException(code, codeName, message);
            case "CANCELLED":
                return new CancelledException(code, codeName, message);
            default:
                return new MoteException(code, codeName, message);
        }
    }
}
