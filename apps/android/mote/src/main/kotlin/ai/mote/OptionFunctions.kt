package ai.mote

/**
 * Options of a generation and of a reply. What is not given, or null, has the default of the model. [Mote.describeOptions]
 * tells what each does and takes, and the call that is given the options checks them.
 */
public fun GenerateOptions(
    maxNewTokens: Int? = null,
    ignoreEos: Boolean? = null,
    maxTime: Double? = null,
    pace: Double? = null,
    skipSpecialTokens: Boolean? = null,
    skipEos: Boolean? = null,
    logprobs: Boolean? = null,
    topLogprobs: Int? = null,
    doSample: Boolean? = null,
    seed: Long? = null,
    repetitionPenalty: Double? = null,
    repetitionWindow: Int? = null,
    frequencyPenalty: Double? = null,
    presencePenalty: Double? = null,
    dryMultiplier: Double? = null,
    dryBase: Double? = null,
    dryAllowedLength: Int? = null,
    dryWindow: Int? = null,
    noRepeatNgramSize: Int? = null,
    minNewTokens: Int? = null,
    temperature: Double? = null,
    topNSigma: Double? = null,
    topK: Int? = null,
    topP: Double? = null,
    minP: Double? = null,
    typicalP: Double? = null,
    xtcProbability: Double? = null,
    xtcThreshold: Double? = null,
    mirostat: String? = null,
    mirostatTau: Double? = null,
    mirostatEta: Double? = null,
    speculative: String? = null,
    draftTokens: Int? = null,
    drySequenceBreakers: List<Any>? = null,
    sequenceBias: Map<List<Int>, Double>? = null,
    logitBias: Map<Int, Double>? = null,
    badWords: List<String>? = null,
    badWordsIds: List<List<Int>>? = null,
    suppressTokens: List<Int>? = null,
    stopStrings: List<String>? = null,
    stopTokenIds: List<Int>? = null,
    jsonSchema: String? = null,
    regex: String? = null,
    grammar: String? = null,
    grammarSyntax: String? = null,
    jsonWhitespace: String? = null,
): Options = Options.builder()
    .maxNewTokens(maxNewTokens).ignoreEos(ignoreEos).maxTime(maxTime).pace(pace).skipSpecialTokens(skipSpecialTokens)
    .skipEos(skipEos).logprobs(logprobs).topLogprobs(topLogprobs).doSample(doSample).seed(seed)
    .repetitionPenalty(repetitionPenalty).repetitionWindow(repetitionWindow).frequencyPenalty(frequencyPenalty)
    .presencePenalty(presencePenalty).dryMultiplier(dryMultiplier).dryBase(dryBase).dryAllowedLength(dryAllowedLength)
    .dryWindow(dryWindow).noRepeatNgramSize(noRepeatNgramSize).minNewTokens(minNewTokens).temperature(temperature)
    .topNSigma(topNSigma).topK(topK).topP(topP).minP(minP).typicalP(typicalP).xtcProbability(xtcProbability)
    .xtcThreshold(xtcThreshold).mirostat(mirostat).mirostatTau(mirostatTau).mirostatEta(mirostatEta)
    .speculative(speculative).draftTokens(draftTokens).drySequenceBreakers(drySequenceBreakers)
    .sequenceBias(sequenceBias).logitBias(logitBias).badWords(badWords).badWordsIds(badWordsIds)
    .suppressTokens(suppressTokens).stopStrings(stopStrings).stopTokenIds(stopTokenIds).jsonSchema(jsonSchema)
    .regex(regex).grammar(grammar).grammarSyntax(grammarSyntax).jsonWhitespace(jsonWhitespace).build()

/** Options of a beam search; those of a generation go with them: `GenerateOptions(...).with(BeamSearchOptions(...))`. */
public fun BeamSearchOptions(
    numBeams: Int? = null,
    numReturnSequences: Int? = null,
    lengthPenalty: Double? = null,
    earlyStopping: String? = null,
): Options = Options.builder()
    .numBeams(numBeams).numReturnSequences(numReturnSequences).lengthPenalty(lengthPenalty).earlyStopping(earlyStopping)
    .build()

/** Options of a session. */
public fun SessionOptions(
    contextLength: Int? = null,
    kvDtype: String? = null,
    threads: Int? = null,
    prefillChunk: Int? = null,
    cpus: String? = null,
    priority: String? = null,
    overflow: String? = null,
    numKeep: Int? = null,
    rewindTokens: Int? = null,
    rewindMb: Int? = null,
    adapters: List<String>? = null,
): Options = Options.builder()
    .contextLength(contextLength).kvDtype(kvDtype).threads(threads).prefillChunk(prefillChunk).cpus(cpus)
    .priority(priority).overflow(overflow).numKeep(numKeep)
    .rewindTokens(rewindTokens).rewindMb(rewindMb).adapters(adapters).build()

/** Options of [Model.open]. */
public fun ModelOptions(
    backend: String? = null,
    cacheDir: String? = null,
    weightsFile: String? = null,
    name: String? = null,
    mmap: Boolean? = null,
    sigbusHandler: Boolean? = null,
    tune: Boolean? = null,
): Options = Options.builder()
    .backend(backend).cacheDir(cacheDir).weightsFile(weightsFile).name(name).mmap(mmap).sigbusHandler(sigbusHandler)
    .tune(tune).build()
