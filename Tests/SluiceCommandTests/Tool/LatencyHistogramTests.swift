import Testing

@testable import SluiceTool

@Suite("The histogram of latencies")
struct LatencyHistogramTests {
  @Test("Every value lies in the part that is named for it, and no more than 3.2 percent below its end")
  func parts() {
    var value: UInt64 = 0
    while value < UInt64.max / 2 {
      let index = LatencyHistogram.index(of: value)
      let upper = LatencyHistogram.upperBound(of: index)
      #expect(value <= upper)
      #expect(Double(upper - value) <= Double(value) * 0.032)
      if index > 0 { #expect(LatencyHistogram.upperBound(of: index - 1) < value) }
      value += max(1, value / 7)
    }
  }

  @Test("Percentiles, of one histogram and of several together")
  func percentiles() {
    var odd = LatencyHistogram()
    var even = LatencyHistogram()
    for value in UInt64(1)...1000 {
      if value % 2 == 1 { odd.add(value * 1000) } else { even.add(value * 1000) }
    }
    odd.merge(even)
    #expect(odd.total == 1000)
    #expect(odd.largest == 1_000_000)
    for (share, exact) in [(0.5, 500_000.0), (0.9, 900_000), (0.99, 990_000)] {
      let found = Double(odd.percentile(share))
      #expect(found >= exact && found <= exact * 1.04)
    }
    #expect(odd.percentile(1) == 1_000_000)
    #expect(LatencyHistogram().percentile(0.5) == 0)
  }
}
