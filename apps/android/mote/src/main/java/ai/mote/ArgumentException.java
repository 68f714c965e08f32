package ai.mote;

/** An argument or option has a value that is not accepted. */
public class ArgumentException extends MoteException {
    ArgumentException(int code, String codeName, String message) {
        super(code, codeName, message);
    }
}
