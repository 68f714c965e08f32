import Charts
import MoteChat
import SwiftUI

/// How fast a model is here, and for ten minutes on end.
struct BenchmarkView: View {
    @State var runs: BenchmarkRuns

    var body: some View {
        List {
            if let result = runs.result {
                LabeledContent("Prompt", value: "\(result.prefillSpeed.formatted(.number.precision(.fractionLength(0)))) tokens/s")
                LabeledContent("Reply", value: "\(result.decodeSpeed.formatted(.number.precision(.fractionLength(1)))) tokens/s")
                LabeledContent("First token", value: "\(result.firstTokenMilliseconds.formatted(.number.precision(.fractionLength(0)))) ms")
                LabeledContent("Memory", value: Int64(result.privateBytes), format: .byteCount(style: .memory))
                LabeledContent("Of the file", value: Int64(result.fileBackedBytes), format: .byteCount(style: .memory))
            }
            if let last = runs.points.last {
                Chart(runs.points) { point in
                    LineMark(x: .value("Seconds", point.seconds), y: .value("Tokens a second", point.tokensPerSecond))
                }
                .chartYScale(domain: .automatic(includesZero: true))
                .frame(minHeight: 200)
                .accessibilityLabel("Speed over time")
                Text("After \(last.seconds, specifier: "%.0f") s: \(last.tokensPerSecond, specifier: "%.1f") tokens/s")
                ShareLink(item: runs.export())
            }
            if let error = runs.error { Text(error).foregroundStyle(.red) }
            if runs.isRunning {
                ProgressView("Measuring")
                Button("Stop", role: .cancel, action: runs.stop)
            } else {
                Button("Measure") { runs.measure() }
                Button("Ten minutes") { runs.sustain() }
            }
        }
        .navigationTitle("Benchmark")
        .onChange(of: runs.isRunning) { UIApplication.shared.isIdleTimerDisabled = runs.isRunning }
        .onDisappear {
            runs.stop()
            UIApplication.shared.isIdleTimerDisabled = false
        }
    }
}
