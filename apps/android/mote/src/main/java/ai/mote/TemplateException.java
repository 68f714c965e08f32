package ai.mote;

/** A chat template that is not valid, or that refuses its conversation. */
public final class TemplateException extends MoteException {
    TemplateException(int code, String codeName, String message) {
        super(code, codeName, message);
    }
}
