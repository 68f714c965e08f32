package ai.mote;

/** The call was cancelled. */
public final class CancelledException extends MoteException {
    CancelledException(int code, String codeName, String message) {
        super(code, codeName, message);
    }
}
