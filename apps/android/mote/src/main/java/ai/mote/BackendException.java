package ai.mote;

/** A backend that this build does not have, or that does not work on this device. */
public final class BackendException extends MoteException {
    BackendException(int code, String codeName, String message) {
        super(code, codeName, message);
    }
}
