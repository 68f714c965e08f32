package ai.mote;

/** The file is missing, unreadable, or was changed while it was in use. */
public final class FileException extends MoteException {
    FileException(int code, String codeName, String message) {
        super(code, codeName, message);
    }
}
