package ai.mote;

/** A call that its object does not take now: another one runs, a batch has the session, or its text was changed. */
public final class StateException extends MoteException {
    StateException(int code, String codeName, String message) {
        super(code, codeName, message);
    }
}
