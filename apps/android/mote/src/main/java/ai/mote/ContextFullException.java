package ai.mote;

/** More tokens than the session's context has room for. */
public final class ContextFullException extends ArgumentException {
    ContextFullException(int code, String codeName, String message) {
        super(code, codeName, message);
    }
}
