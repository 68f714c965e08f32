import Foundation

/// Serves one file at /file.mote, and as a hub's org/demo, in as many wrong ways as tests ask for.
final class FaultyServer: @unchecked Sendable {
    enum Fault: CaseIterable {
        case none, cut, busy, redirect, otherRange, noRange, damaged
        /// Sends a part, then nothing until the client goes.
        case stalled
        case slow
    }

    struct State {
        var file: Data
        var etag = "\"one\""
        var faults: [Fault] = []
        var ranges: [String] = []
        var paths: [String] = []
        var sentBytes = 0
    }

    let port: UInt16
    private let listener: Int32
    private let lock = NSLock()
    private var state: State
    private var isClosed = false

    init(_ file: Data) throws {
        state = State(file: file)
        signal(SIGPIPE, SIG_IGN)
        #if canImport(Glibc)
            listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #else
            listener = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let fd = listener
        let failed = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(fd, $0, size) + listen(fd, 64) + getsockname(fd, $0, &size) }
        }
        if failed != 0 { throw POSIXError(.EADDRNOTAVAIL) }
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread { [self] in
            while true {
                let connection = accept(fd, nil, nil)
                if connection < 0 || locked({ isClosed }) { return }
                Thread.detachNewThread { [self] in
                    serve(connection)
                    Self.close(connection)
                }
            }
        }
    }

    var endpoint: String { "http://127.0.0.1:\(port)" }
    var url: String { endpoint + "/file.mote" }

    func withState<T>(_ body: (inout State) -> T) -> T { locked { body(&state) } }

    /// Of every request, "" where it had none.
    var ranges: [String] { locked { state.ranges } }
    var paths: [String] { locked { state.paths } }
    var sentBytes: Int { locked { state.sentBytes } }

    func fail(_ faults: Fault...) { withState { $0.faults += faults } }

    func close() {
        locked { isClosed = true }
        shutdown(listener, Int32(SHUT_RDWR))
        Self.close(listener)
    }

    private static func close(_ descriptor: Int32) {
        #if canImport(Glibc)
            _ = Glibc.close(descriptor)
        #else
            _ = Darwin.close(descriptor)
        #endif
    }

    private func locked<T>(_ body: () -> T) -> T {
        lock.lock()
        defer { lock.unlock() }
        return body()
    }

    private func serve(_ connection: Int32) {
        guard let request = Self.request(connection) else { return }
        let range = request.headers["range"] ?? ""
        let (file, etag, fault) = withState { state in
            state.ranges.append(range)
            state.paths.append(request.path)
            return (state.file, state.etag, state.faults.isEmpty ? Fault.none : state.faults.removeFirst())
        }
        if fault == .busy { return send(connection, "503 Busy", ["Retry-After: 1"]) }
        if fault == .redirect { return send(connection, "302 Found", ["Location: /elsewhere"]) }
        if request.path.hasPrefix("/api/models/org/demo?") {
            let listing = "{\"sha\":\"c0ffee\",\"siblings\":[{\"rfilename\":\"demo.mote\",\"lfs\":{\"size\":\(file.count)}}]}"
            return send(connection, "200 OK", [], Data(listing.utf8))
        }
        if fault == .none, request.headers["if-none-match"] == etag { return send(connection, "304 Not Modified", []) }
        let condition = request.headers["if-range"]
        let isPart = !range.isEmpty && (condition == nil || condition == etag) && fault != .noRange
        let from = fault == .otherRange ? 70_000 : isPart ? Int(range.dropFirst(6).dropLast()) ?? 0 : 0
        var body = file.dropFirst(from)
        if fault == .damaged { body[body.endIndex - 1] ^= 1 }
        var headers = ["ETag: \(etag)", "Accept-Ranges: bytes"]
        if from > 0 { headers.append("Content-Range: bytes \(from)-\(file.count - 1)/\(file.count)") }
        let isShort = fault == .cut || fault == .stalled
        send(connection, from > 0 ? "206 Partial Content" : "200 OK", headers, body, most: isShort ? 200_000 : body.count, pause: fault == .slow ? 10_000 : 0)
        while fault == .stalled, !locked({ isClosed }), !Self.isGone(connection) { usleep(20_000) }
    }

    private func send(_ connection: Int32, _ status: String, _ headers: [String], _ body: Data = Data(), most: Int = .max, pause: UInt32 = 0) {
        let lines = ["HTTP/1.1 \(status)", "Content-Length: \(body.count)", "Connection: close"] + headers + ["", ""]
        var left = Data(lines.joined(separator: "\r\n").utf8) + body.prefix(most)
        while !left.isEmpty {
            let piece = left.prefix(1 << 16)
            let count = piece.withUnsafeBytes { write(connection, $0.baseAddress, $0.count) }
            if count <= 0 { return }
            left = left.dropFirst(count)
            withState { $0.sentBytes += count }
            usleep(pause)
        }
    }

    private static func isGone(_ connection: Int32) -> Bool {
        var byte: UInt8 = 0
        return recv(connection, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) == 0
    }

    private static func request(_ connection: Int32) -> (path: String, headers: [String: String])? {
        var text = ""
        var bytes = [UInt8](repeating: 0, count: 4096)
        while !text.hasSuffix("\r\n\r\n") {
            let count = read(connection, &bytes, bytes.count)
            if count <= 0 { return nil }
            text += String(decoding: bytes.prefix(count), as: UTF8.self)
        }
        let lines = text.components(separatedBy: "\r\n")
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.range(of: ": ") else { continue }
            headers[line[..<colon.lowerBound].lowercased()] = String(line[colon.upperBound...])
        }
        let words = lines[0].split(separator: " ")
        return words.count > 1 ? (String(words[1]), headers) : nil
    }
}
