import CMote

/// A JSON Schema, regular expression or grammar, compiled for a model's vocabulary. Generations keep theirs.
public final class Grammar: Sendable {
    public enum Syntax: Int32, Sendable {
        case jsonSchema = 0
        case regex = 1
        case gbnf = 2
        case lark = 3
    }

    let handle: Handle

    init(_ model: Handle, _ syntax: Syntax, _ source: String, _ isCancelled: Locked<Bool>) throws {
        let vocabulary = try model.opened("vocabulary", close: mote_vocabulary_close) { mote_model_vocabulary($0, $1, $2) }
        handle = try source.withCBytes { source, bytes in
            var options = mote_grammar_options()
            options.struct_size = UInt32(MemoryLayout<mote_grammar_options>.size)
            options.syntax = value(syntax.rawValue)
            options.source = source
            options.source_bytes = bytes
            options.is_cancelled = { Unmanaged<Locked<Bool>>.fromOpaque($0!).takeUnretainedValue().withLock { $0 } ? 1 : 0 }
            options.user_data = Unmanaged.passUnretained(isCancelled).toOpaque()
            return try withExtendedLifetime(isCancelled) {
                try vocabulary.opened("grammar", close: mote_grammar_close) { mote_grammar_open($0, &options, $1, $2) }
            }
        }
    }

    public func close() { handle.close() }
}
