// Nanoseconds a token of a text that a grammar forces, so that the model does not run: the C API alone and Swift's streams, least of
// some runs.
import CMote
import Foundation
import Mote

let forced: Options = ["regex": "(def f [(]x[)]: return x; ){100}"]
let runs = 200

func now() -> Double { Double(DispatchTime.now().uptimeNanoseconds) }

func check(_ code: mote_error_code) { precondition(code.rawValue == 0) }

/// What stands behind every stream, without it.
func ofC(_ path: String) -> Double {
    var (model, session, options): (OpaquePointer?, OpaquePointer?, OpaquePointer?)
    check(mote_model_open(path, nil, &model, nil))
    check(mote_session_open(model, nil, &session, nil))
    check(mote_options_open(1, &options, nil))
    check(mote_options_set(options, "regex", "(def f [(]x[)]: return x; ){100}", nil))
    var least = Double.infinity
    for _ in 0..<runs {
        var generation: OpaquePointer?
        check(mote_session_reset(session, nil))
        check(mote_generation_begin(session, [1], 1, options, &generation, nil))
        var piece = mote_piece()
        piece.struct_size = UInt32(MemoryLayout<mote_piece>.size)
        check(mote_generation_next(generation, &piece, nil))
        let begin = now()
        var count = 0.0
        while piece.finished == 0 {
            check(mote_generation_next(generation, &piece, nil))
            count += 1
        }
        least = min(least, (now() - begin) / count)
        mote_generation_end(generation)
    }
    mote_options_close(options)
    mote_session_close(session)
    mote_model_close(model)
    return least
}

func ofStream(_ session: Session) async throws -> Double {
    try await session.reset()
    var begin = 0.0
    var count = -1.0
    for try await _ in session.pieces(after: [1], options: forced) {
        if count < 0 { begin = now() }
        count += 1
    }
    return (now() - begin) / count
}

let c = ofC(CommandLine.arguments[1])
let session = try await Model(contentsOf: URL(fileURLWithPath: CommandLine.arguments[1])).session()
var swift = Double.infinity
for _ in 0..<runs { swift = min(swift, try await ofStream(session)) }
print("C API \(Int(c)) ns a token, Swift's stream \(Int(swift)) ns (+\(Int(swift - c)))")
