package ai.mote;

/** What a grammar is written in, in the order of mote_syntax. */
public enum Syntax {
    JSON_SCHEMA,
    REGEX,
    GBNF,
    LARK
}
