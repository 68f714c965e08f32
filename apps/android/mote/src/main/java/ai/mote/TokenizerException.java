package ai.mote;

/** A tokenizer of a kind that is not supported, or a malformed one. */
public final class TokenizerException extends ProgramException {
    TokenizerException(int code, String codeName, String message) {
        super(code, codeName, message);
    }
}
