import Mote
import MoteChat
import XCTest

final class SettingsTests: XCTestCase {
    private func setting(_ name: String) throws -> Setting { try XCTUnwrap(Setting.all.first { $0.name == name }) }

    func testAreThoseOfTheLibrarysTable() throws {
        XCTAssertTrue(Set(["temperature", "top_p", "seed", "pace", "stop_strings"]).isSubset(of: Setting.all.map(\.name)))
        XCTAssertEqual(try setting("seed").standard, "")
        XCTAssertEqual(try setting("top_p").maximum, 1)
    }

    func testAWrongValueIsAnsweredWithWhatWouldBeAccepted() throws {
        XCTAssertNil(try setting("top_p").problem("0.5"))
        XCTAssertNil(try setting("top_p").problem(""))
        XCTAssertEqual(try setting("top_p").problem("2"), "top_p = 2: must be a number, 0..1 (1: off)")
        for text in ["x", "1.5", "-1", "NaN", "inf"] { XCTAssertNotNil(try setting("top_k").problem(text), text) }
        XCTAssertThrowsError(try ChatSettings(values: ["top_k": "-1"]).options())
    }

    func testBecomeOptions() throws {
        let values = ["temperature": "0.5", "top_k": "3", "stop_strings": "###", "seed": "", "gone": "1"]
        XCTAssertEqual(try ChatSettings(values: values).options(), ["temperature": 0.5, "top_k": 3, "stop_strings": "###"])
    }
}
