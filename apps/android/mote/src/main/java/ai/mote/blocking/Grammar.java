package ai.mote.blocking;

/** A schema, regular expression or grammar, compiled for a model. May be used by any number of threads. */
public final class Grammar extends Handle {
    Grammar(long number) {
        super(Kind.GRAMMAR, number);
    }
}
