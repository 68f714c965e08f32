package ai.mote;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Options by names that the compiler knows: a method for each row of {@link Mote#describeOptions}, which says what it
 * does, what it takes and its default. What is not given, or null, has the default of the call that is given the
 * options; that call checks the values too. One thread at a time.
 */
public final class OptionsBuilder {
    private final Map<String, Object> values = new LinkedHashMap<>();

    OptionsBuilder() {}

    public Options build() {
        return Options.of(values);
    }

    private OptionsBuilder set(String name, Object value) {
        if (value == null) {
            values.remove(name);
        } else {
            values.put(name, value);
        }
        return this;
    }

    /** JSON has no -infinity, which keeps a token out: its text stands for it. */
    private static Object bias(Double value) {
        return value == Double.NEGATIVE_INFINITY ? "-inf" : value;
    }

    public OptionsBuilder maxNewTokens(Integer value) {
        return set("max_new_tokens", value);
    }

    public OptionsBuilder ignoreEos(Boolean value) {
        return set("ignore_eos", value);
    }

    public OptionsBuilder maxTime(Number value) {
        return set("max_time", value);
    }

    public OptionsBuilder pace(Number value) {
        return set("pace", value);
    }

    public OptionsBuilder skipSpecialTokens(Boolean value) {
        return set("skip_special_tokens", value);
    }

    public OptionsBuilder skipEos(Boolean value) {
        return set("skip_eos", value);
    }

    public OptionsBuilder logprobs(Boolean value) {
        return set("logprobs", value);
    }

    public OptionsBuilder topLogprobs(Integer value) {
        return set("top_logprobs", value);
    }

    public OptionsBuilder doSample(Boolean value) {
        return set("do_sample", value);
    }

    public OptionsBuilder seed(Long value) {
        return set("seed", value);
    }

    public OptionsBuilder repetitionPenalty(Number value) {
        return set("repetition_penalty", value);
    }

    public OptionsBuilder repetitionWindow(Integer value) {
        return set("repetition_window", value);
    }

    public OptionsBuilder frequencyPenalty(Number value) {
        return set("frequency_penalty", value);
    }

    public OptionsBuilder presencePenalty(Number value) {
        return set("presence_penalty", value);
    }

    public OptionsBuilder dryMultiplier(Number value) {
        return set("dry_multiplier", value);
    }

    public OptionsBuilder dryBase(Number value) {
        return set("dry_base", value);
    }

    public OptionsBuilder dryAllowedLength(Integer value) {
        return set("dry_allowed_length", value);
    }

    public OptionsBuilder dryWindow(Integer value) {
        return set("dry_window", value);
    }

    public OptionsBuilder noRepeatNgramSize(Integer value) {
        return set("no_repeat_ngram_size", value);
    }

    public OptionsBuilder minNewTokens(Integer value) {
        return set("min_new_tokens", value);
    }

    public OptionsBuilder temperature(Number value) {
        return set("temperature", value);
    }

    public OptionsBuilder topNSigma(Number value) {
        return set("top_n_sigma", value);
    }

    public OptionsBuilder topK(Integer value) {
        return set("top_k", value);
    }

    public OptionsBuilder topP(Number value) {
        return set("top_p", value);
    }

    public OptionsBuilder minP(Number value) {
        return set("min_p", value);
    }

    public OptionsBuilder typicalP(Number value) {
        return set("typical_p", value);
    }

    public OptionsBuilder xtcProbability(Number value) {
        return set("xtc_probability", value);
    }

    public OptionsBuilder xtcThreshold(Number value) {
        return set("xtc_threshold", value);
    }

    public OptionsBuilder mirostat(String value) {
        return set("mirostat", value);
    }

    public OptionsBuilder mirostatTau(Number value) {
        return set("mirostat_tau", value);
    }

    public OptionsBuilder mirostatEta(Number value) {
        return set("mirostat_eta", value);
    }

    public OptionsBuilder speculative(String value) {
        return set("speculative", value);
    }

    public OptionsBuilder draftTokens(Integer value) {
        return set("draft_tokens", value);
    }

    public OptionsBuilder drySequenceBreakers(List<?> value) {
        return set("dry_sequence_breakers", value);
    }

    public OptionsBuilder sequenceBias(Map<List<Integer>, Double> value) {
        List<Object> rows = new ArrayList<>();
        if (value != null) {
            for (Map.Entry<List<Integer>, Double> row : value.entrySet()) {
                rows.add(Arrays.asList(row.getKey(), bias(row.getValue())));
            }
        }
        return set("sequence_bias", value == null ? null : rows);
    }

    public OptionsBuilder logitBias(Map<Integer, Double> value) {
        Map<String, Object> rows = new LinkedHashMap<>();
        if (value != null) {
            for (Map.Entry<Integer, Double> row : value.entrySet()) {
                rows.put(row.getKey().toString(), bias(row.getValue()));
            }
        }
        return set("logit_bias", value == null ? null : rows);
    }

    public OptionsBuilder badWords(List<String> value) {
        return set("bad_words", value);
    }

    public OptionsBuilder badWordsIds(List<List<Integer>> value) {
        return set("bad_words_ids", value);
    }

    public OptionsBuilder suppressTokens(List<Integer> value) {
        return set("suppress_tokens", value);
    }

    public OptionsBuilder stopStrings(List<String> value) {
        return set("stop_strings", value);
    }

    public OptionsBuilder stopTokenIds(List<Integer> value) {
        return set("stop_token_ids", value);
    }

    public OptionsBuilder jsonSchema(String value) {
        return set("json_schema", value);
    }

    public OptionsBuilder regex(String value) {
        return set("regex", value);
    }

    public OptionsBuilder grammar(String value) {
        return set("grammar", value);
    }

    public OptionsBuilder grammarSyntax(String value) {
        return set("grammar_syntax", value);
    }

    public OptionsBuilder jsonWhitespace(String value) {
        return set("json_whitespace", value);
    }

    public OptionsBuilder numBeams(Integer value) {
        return set("num_beams", value);
    }

    public OptionsBuilder numReturnSequences(Integer value) {
        return set("num_return_sequences", value);
    }

    public OptionsBuilder lengthPenalty(Number value) {
        return set("length_penalty", value);
    }

    public OptionsBuilder earlyStopping(String value) {
        return set("early_stopping", value);
    }

    public OptionsBuilder contextLength(Integer value) {
        return set("context_length", value);
    }

    public OptionsBuilder kvDtype(String value) {
        return set("kv_dtype", value);
    }

    public OptionsBuilder threads(Integer value) {
        return set("threads", value);
    }

    public OptionsBuilder prefillChunk(Integer value) {
        return set("prefill_chunk", value);
    }

    public OptionsBuilder cpus(String value) {
        return set("cpus", value);
    }

    public OptionsBuilder priority(String value) {
        return set("priority", value);
    }

    public OptionsBuilder overflow(String value) {
        return set("overflow", value);
    }

    public OptionsBuilder numKeep(Integer value) {
        return set("num_keep", value);
    }

    public OptionsBuilder rewindTokens(Integer value) {
        return set("rewind_tokens", value);
    }

    public OptionsBuilder rewindMb(Integer value) {
        return set("rewind_mb", value);
    }

    public OptionsBuilder adapters(List<String> value) {
        return set("adapters", value);
    }

    public OptionsBuilder backend(String value) {
        return set("backend", value);
    }

    public OptionsBuilder cacheDir(String value) {
        return set("cache_dir", value);
    }

    public OptionsBuilder weightsFile(String value) {
        return set("weights_file", value);
    }

    public OptionsBuilder name(String value) {
        return set("name", value);
    }

    public OptionsBuilder mmap(Boolean value) {
        return set("mmap", value);
    }

    public OptionsBuilder sigbusHandler(Boolean value) {
        return set("sigbus_handler", value);
    }

    public OptionsBuilder tune(Boolean value) {
        return set("tune", value);
    }
}
