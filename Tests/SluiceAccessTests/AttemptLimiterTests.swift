import SluiceAccess
import Testing

@Suite("Slowing down who guesses")
struct AttemptLimiterTests {
  private let second: UInt64 = 1_000_000_000

  private func settings(_ change: (inout AttemptLimiter.Settings) -> Void = { _ in })
    -> AttemptLimiter.Settings
  {
    var settings = AttemptLimiter.Settings()
    settings.free = 2
    settings.first = .seconds(1)
    settings.ceiling = .seconds(8)
    settings.memory = .seconds(100)
    change(&settings)
    return settings
  }

  @Test("the first failures cost nothing, each further one doubles the time, up to a ceiling")
  func doubling() {
    var limiter = AttemptLimiter(settings())
    var delays: [Duration] = []
    for _ in 0..<8 {
      limiter.failed("192.0.2.1", at: second)
      delays.append(limiter.delay(for: "192.0.2.1", at: second))
    }
    #expect(delays == [0, 0, 1, 2, 4, 8, 8, 8].map { .seconds($0) })
    #expect(limiter.delay(for: "192.0.2.1", at: 6 * second) == .seconds(3))
    #expect(limiter.delay(for: "192.0.2.1", at: 9 * second) == .zero)
    #expect(limiter.delay(for: "192.0.2.2", at: second) == .zero)
  }

  @Test("however many failures cost nothing, and however small the steps are, the ceiling is reached")
  func longWay() {
    for (free, first) in [
      (40, Duration.seconds(1)), (2, .nanoseconds(1)), (Int.max, .seconds(1)), (-3, .seconds(1)),
    ] {
      var limiter = AttemptLimiter(
        settings {
          $0.free = free
          $0.first = first
        })
      for _ in 0..<80 { limiter.failed("192.0.2.1", at: 0) }
      #expect(limiter.delay(for: "192.0.2.1", at: 0) == (free == .max ? .zero : .seconds(8)), "\(free)")
    }
  }

  @Test("failures are forgotten one by one")
  func forgetting() {
    var limiter = AttemptLimiter(settings())
    for _ in 0..<4 { limiter.failed("192.0.2.1", at: 0) }
    // Each row: the time of another failure, and the delay right after it.
    let table: [(UInt64, Int)] = [(99, 4), (100, 4), (201, 4), (500, 1), (1_000, 0)]
    for (time, delay) in table {
      limiter.failed("192.0.2.1", at: time * second)
      #expect(limiter.delay(for: "192.0.2.1", at: time * second) == .seconds(delay), "at \(time)")
    }
  }

  @Test("a success makes up for one failure, and not for many in a short time")
  func success() {
    var limiter = AttemptLimiter(settings())
    for _ in 0..<4 { limiter.failed("192.0.2.1", at: 0) }
    for _ in 0..<10 { limiter.succeeded("192.0.2.1", at: 0) }
    #expect(limiter.delay(for: "192.0.2.1", at: 0) == .seconds(1))
    limiter.succeeded("192.0.2.1", at: 100 * second)
    limiter.failed("192.0.2.1", at: 100 * second)
    #expect(limiter.delay(for: "192.0.2.1", at: 100 * second) == .zero)
  }

  @Test(
    "addresses that one customer has are one",
    arguments: [
      ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", true), ("2001:db8:1:2::1", "2001:db8:1:3::1", false),
      ("fe80::1%eth0", "fe80::2", true), ("192.0.2.1", "::ffff:192.0.2.1", true),
      ("192.0.2.1", "192.0.2.2", false), ("0.0.0.1", "::", false), ("::", "0.0.0.0", false),
    ])
  func addresses(one: String, other: String, areOne: Bool) {
    var limiter = AttemptLimiter(settings { $0.free = 0 })
    limiter.failed(one, at: 0)
    #expect(limiter.delay(for: one, at: 0) == .seconds(1))
    #expect((limiter.delay(for: other, at: 0) > .zero) == areOne)
  }

  @Test(
    "what isn't a numeric address never waits", arguments: [nil, "", "localhost", "/run/socket", "1.2.3"])
  func elsewhere(host: String?) {
    var limiter = AttemptLimiter(settings { $0.free = 0 })
    limiter.failed(host, at: 0)
    limiter.succeeded(host, at: 0)
    #expect(limiter.delay(for: host, at: 0) == .zero)
    #expect(limiter.count == 0)
  }

  @Test("who has failed often isn't forgotten for many who have failed once")
  func flood() {
    var limiter = AttemptLimiter(settings { $0.capacity = 100 })
    for _ in 0..<6 { limiter.failed("192.0.2.1", at: 0) }
    for index in 0..<5_000 { limiter.failed("10.0.\(index / 250).\(index % 250)", at: 0) }
    #expect(limiter.count == 100)
    #expect(limiter.delay(for: "192.0.2.1", at: 0) == .seconds(8))
  }

  @Test("who finds no place shares one, and is held up less")
  func crowd() {
    var limiter = AttemptLimiter(settings { $0.capacity = 20 })
    for index in 0..<20 {
      for _ in 0..<6 { limiter.failed("10.0.0.\(index)", at: 0) }
    }
    #expect(limiter.delay(for: "192.0.2.1", at: 0) == .zero)
    for index in 0..<9 { limiter.failed("192.0.2.\(index)", at: 0) }
    #expect(limiter.count == 20)
    #expect(limiter.delay(for: "192.0.2.99", at: 0) == .seconds(1))
    // Once the others are removed, there is room.
    limiter.failed("192.0.2.7", at: 700 * second)
    limiter.failed("192.0.2.7", at: 700 * second)
    limiter.failed("192.0.2.7", at: 700 * second)
    #expect(limiter.delay(for: "192.0.2.7", at: 700 * second) == .seconds(1))
    #expect(limiter.count == 20)
  }

  @Test("a clock at its ends, or one that goes back, does no harm")
  func clocks() {
    var limiter = AttemptLimiter(settings { $0.ceiling = .seconds(Int64.max) })
    for time in [UInt64.max, 0, .max - 1, 5, .max] {
      for _ in 0..<50 { limiter.failed("192.0.2.1", at: time) }
      limiter.succeeded("192.0.2.1", at: time)
      #expect(limiter.delay(for: "192.0.2.1", at: time) >= .zero)
    }
  }
}
