package ai.mote;

import ai.mote.blocking.Grammar;
import ai.mote.blocking.PrefixCache;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * What a user may set, by name or with an {@link OptionsBuilder}; what is not given has the model's default. {@link Mote#describeOptions} lists the
 * names with types and ranges. A set of options never changes and may be used by any number of threads; a wrong name or
 * value is an {@link ArgumentException} of the call that is given them.
 */
public final class Options {
    /** Nothing but defaults. */
    public static final Options NONE = new Options(Collections.<String, Object>emptyMap(), null, null);

    private final Map<String, Object> values;
    private final String json;
    private final Grammar grammar;
    private final PrefixCache prefixCache;

    private Options(Map<String, Object> values, Grammar grammar, PrefixCache prefixCache) {
        this.values = values;
        this.json = JsonText.of(values);
        this.grammar = grammar;
        this.prefixCache = prefixCache;
    }

    public static Options of(String name, Object value) {
        return NONE.with(name, value);
    }

    /** Values are text, numbers, booleans, or lists and maps of them; null: as if it had not been given. */
    public static Options of(Map<String, ?> values) {
        return new Options(new LinkedHashMap<String, Object>(values), null, null);
    }

    /** By names that the compiler knows. */
    public static OptionsBuilder builder() {
        return new OptionsBuilder();
    }

    /** These options and others, which win. */
    public Options with(Options others) {
        Map<String, Object> more = new LinkedHashMap<>(values);
        more.putAll(others.values);
        return new Options(more, others.grammar == null ? grammar : others.grammar,
                others.prefixCache == null ? prefixCache : others.prefixCache);
    }

    /** These options and one more. */
    public Options with(String name, Object value) {
        Map<String, Object> more = new LinkedHashMap<>(values);
        more.put(name, value);
        return new Options(more, grammar, prefixCache);
    }

    /** What generated text is to follow, in the place of json_schema, regex and grammar. */
    public Options withGrammar(Grammar grammar) {
        return new Options(values, grammar, prefixCache);
    }

    /** Where a session looks when a text begins. */
    public Options withPrefixCache(PrefixCache cache) {
        return new Options(values, grammar, cache);
    }

    @Override
    public String toString() {
        return "Options " + json;
    }
}
