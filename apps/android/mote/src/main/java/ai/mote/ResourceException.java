package ai.mote;

/** The system refused memory or a thread. */
public final class ResourceException extends MoteException {
    ResourceException(int code, String codeName, String message) {
        super(code, codeName, message);
    }
}
