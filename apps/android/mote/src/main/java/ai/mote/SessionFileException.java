package ai.mote;

/** A saved session that is damaged, or that another model file made. */
public final class SessionFileException extends MoteException {
    SessionFileException(int code, String codeName, String message) {
        super(code, codeName, message);
    }
}
