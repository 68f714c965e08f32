import CMote

/// Why a text ended.
public enum FinishReason: Int32, Sendable {
    case eos = 0
    case length = 1
    case stopString = 2
    case cancelled = 3
    case stopToken = 4
    case time = 5
}

public struct TokenLogprob: Hashable, Sendable {
    public let id: Int32
    /// Natural logarithm.
    public let logprob: Float

    static func list(_ start: UnsafePointer<mote_token_logprob>?, _ count: Int) -> [TokenLogprob] {
        UnsafeBufferPointer(start: start, count: count).map { TokenLogprob(id: $0.id, logprob: $0.logprob) }
    }
}

/// A step of a text: a token, and the whole characters that are known with it.
public struct Piece: Sendable {
    /// -1: none
    public let id: Int32
    /// May be empty: text is held back while a character or a stop string may go on.
    public let text: String
    /// Of the token; 0 unless the options logprobs or top_logprobs ask for it.
    public let logprob: Float
    /// Likeliest first.
    public let topLogprobs: [TokenLogprob]
    /// nil: more follows
    public let finishReason: FinishReason?
    /// Of the last piece.
    public internal(set) var statistics: Statistics?

    init(_ piece: mote_piece) {
        id = piece.id
        text = copiedText(piece.text, piece.text_bytes)
        logprob = piece.logprob
        topLogprobs = TokenLogprob.list(piece.top_logprobs, piece.num_top_logprobs)
        finishReason = piece.finished != 0 ? FinishReason(rawValue: piece.finish_reason.rawValue) : nil
    }
}

/// What a text took.
public struct Statistics: Hashable, Sendable {
    public let finishReason: FinishReason?
    public let promptTokens: Int
    public let generatedTokens: Int
    public let prefillSeconds: Double
    /// After the first token.
    public let decodeSeconds: Double
    public let timeToFirstTokenSeconds: Double
    /// Of the process.
    public let peakRSSBytes: UInt64
    /// Anonymous memory of the process; 0 where the system does not tell.
    public let peakPrivateBytes: UInt64
    /// Of those generated: the grammar left no choice, and the model was not run for them.
    public let forcedTokens: Int
    /// By a draft model or from the text, and verified.
    public let proposedTokens: Int
    public let acceptedTokens: Int
    public let numDrafts: Int
    public let meanRunLength: Double
    /// 1: nothing was proposed
    public let speculativeSpeedUp: Double
    /// Why nothing was proposed; nil: it may be
    public let speculativeOffReason: String?

    static func of(_ call: (UnsafeMutablePointer<mote_statistics>) throws -> Void) rethrows -> Statistics {
        var statistics = mote_statistics()
        statistics.struct_size = UInt32(MemoryLayout<mote_statistics>.size)
        try call(&statistics)
        return Statistics(statistics)
    }

    init(_ statistics: mote_statistics) {
        finishReason = FinishReason(rawValue: statistics.finish_reason.rawValue)
        promptTokens = Int(statistics.prompt_tokens)
        generatedTokens = Int(statistics.generated_tokens)
        prefillSeconds = statistics.prefill_seconds
        decodeSeconds = statistics.decode_seconds
        timeToFirstTokenSeconds = statistics.time_to_first_token_seconds
        peakRSSBytes = statistics.peak_rss_bytes
        peakPrivateBytes = statistics.peak_private_bytes
        forcedTokens = Int(statistics.forced_tokens)
        proposedTokens = Int(statistics.proposed_tokens)
        acceptedTokens = Int(statistics.accepted_tokens)
        numDrafts = Int(statistics.num_drafts)
        meanRunLength = statistics.mean_run_length
        speculativeSpeedUp = statistics.speculative_speed_up
        speculativeOffReason = statistics.speculative_off_reason.map { String(cString: $0) }
    }
}

/// What a reply took.
public struct ChatStatistics: Hashable, Sendable {
    public let promptTokens: Int
    /// Of the prompt, that needed no computation.
    public let keptTokens: Int
    /// Of the conversation, because the context was full.
    public let forgottenTokens: Int
    /// Of the session.
    public let position: Int
    public let contextLength: Int
    /// Its prompt is what was not kept.
    public let generation: Statistics

    init(_ chat: mote_chat_statistics, _ generation: mote_statistics) {
        promptTokens = Int(chat.prompt_tokens)
        keptTokens = Int(chat.kept_tokens)
        forgottenTokens = Int(chat.forgotten_tokens)
        position = Int(chat.position)
        contextLength = Int(chat.context_length)
        self.generation = Statistics(generation)
    }
}
