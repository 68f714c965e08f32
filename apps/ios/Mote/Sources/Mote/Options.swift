import CMote

/// Options by name, those of every front end: `["temperature": 0.7, "seed": 2]`. ``MoteLibrary/describeOptions()`` lists them. Whatever is
/// not given has the model's default.
public struct Options: Sendable, Equatable, ExpressibleByDictionaryLiteral {
    private var members: [JSONValue.Member] = []
    /// What text is to follow, in the place of json_schema, regex and grammar.
    public var grammar: Grammar?
    /// Where sessions look when a text begins.
    public var prefixCache: PrefixCache?

    public init() {}

    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        for (name, value) in elements { self[name] = value }
    }

    /// nil: it has not been given
    public subscript(name: String) -> JSONValue? {
        get { members.last { $0.name == name }?.value }
        set {
            members.removeAll { $0.name == name }
            if let newValue { members.append(JSONValue.Member(name, newValue)) }
        }
    }

    /// The same with one more.
    public func with(_ name: String, _ value: JSONValue?) -> Options {
        var options = self
        options[name] = value
        return options
    }

    public static func == (a: Options, b: Options) -> Bool {
        a.members == b.members && a.grammar === b.grammar && a.prefixCache === b.prefixCache
    }

    /// Calls with a handle of them. scopes: a sum of MOTE_SCOPE_*
    func withHandle<T>(_ scopes: Scope, _ body: (OpaquePointer) throws -> T) throws -> T {
        var handle: OpaquePointer?
        try check { mote_options_open(scopes.rawValue, &handle, $0) }
        defer { mote_options_close(handle) }
        if !members.isEmpty {
            try JSONValue.object(members).json.withCBytes { json, count in
                try check { mote_options_set_json(handle, json, count, $0) }
            }
        }
        if let grammar { try grammar.handle.call { mote_options_set_grammar(handle, $0, $1) } }
        if let prefixCache { try prefixCache.handle.call { mote_options_set_prefix_cache(handle, $0, $1) } }
        return try body(handle!)
    }

    struct Scope: OptionSet {
        let rawValue: Int32
        static let generation = Scope(rawValue: 1)
        static let beamSearch = Scope(rawValue: 2)
        static let session = Scope(rawValue: 4)
        static let model = Scope(rawValue: 8)
    }
}
