package ai.mote;

/** The file is malformed, of another version, or needs an op that this build does not have. */
public class ProgramException extends MoteException {
    ProgramException(int code, String codeName, String message) {
        super(code, codeName, message);
    }
}
