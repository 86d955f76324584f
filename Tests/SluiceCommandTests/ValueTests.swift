import SluiceCommand
import SluiceIO
import Testing

@Suite("Reading and writing values")
struct ValueTests {
  @Test(
    "Sizes",
    arguments: [
      ("0", 0), ("1500", 1500), ("7B", 7), ("4KiB", 4096), ("4k", 4096), ("64MiB", 64 << 20),
      ("64mib", 64 << 20),
      ("1 GiB", 1 << 30), ("2T", 2 << 40), ("1kB", 1000), ("3MB", 3_000_000), ("2GB", 2_000_000_000),
      ("18446744073709551615", UInt64.max),
    ])
  func sizes(text: String, bytes: UInt64) throws {
    #expect(try ByteSize.parse(text) == bytes)
  }

  @Test(
    "What isn't a size is refused",
    arguments: [
      "", "MiB", "1.5GiB", "-1", "64MiX", "1e3", "everything", "16777216TiB", "18446744073709551616",
    ])
  func notSizes(text: String) {
    #expect(throws: ValueError.self) { try ByteSize.parse(text) }
  }

  @Test(
    "A size is written so that it reads back as the same",
    arguments: [0, 1, 1023, 1024, 1536, 1 << 20, 3 << 40])
  func sizesRoundTrip(bytes: UInt64) throws {
    #expect(try ByteSize.parse(ByteSize.exact(bytes)) == bytes)
  }

  @Test(
    "Sizes for reading",
    arguments: [
      (0, "0 B"), (900, "900 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (1536, "1.50 KiB"),
      (10 << 20, "10.0 MiB"),
      (1_300_000_000, "1.21 GiB"),
    ])
  func roundedSizes(bytes: UInt64, text: String) {
    #expect(ByteSize.rounded(bytes) == text)
  }

  @Test(
    "Durations",
    arguments: [
      ("0", 0), ("30s", 30_000), ("250ms", 250), ("24h", 86_400_000), ("1h30m", 5_400_000),
      ("7d", 604_800_000),
      ("1m5s20ms", 65_020),
    ])
  func durations(text: String, milliseconds: Int64) throws {
    #expect(try TimeSpan.parse(text) == .milliseconds(milliseconds))
  }

  @Test(
    "What isn't a duration is refused",
    arguments: ["", "5", "s", "5x", "1.5h", "-3s", "99999999999d", "1h 3m"])
  func notDurations(text: String) {
    #expect(throws: ValueError.self) { try TimeSpan.parse(text) }
  }

  @Test("A duration that is too long to be read back is written all the same")
  func longDurations() {
    #expect(TimeSpan.exact(.milliseconds(Int64.max)) == "106751991167d7h12m55s807ms")
    #expect(TimeSpan.exact(.seconds(-5)) == "0s")
  }

  @Test(
    "A duration is written so that it reads back as the same",
    arguments: [
      ("0s", Duration.zero), ("1h30m", .seconds(5400)), ("30s", .seconds(30)),
      ("1s250ms", .milliseconds(1250)),
    ])
  func durationsRoundTrip(text: String, duration: Duration) throws {
    #expect(TimeSpan.exact(duration) == text)
    #expect(try TimeSpan.parse(text) == duration)
  }

  @Test(
    "Durations for reading",
    arguments: [
      (Duration.nanoseconds(850), "850 ns"), (.nanoseconds(23_400), "23.4 µs"),
      (.nanoseconds(1_250_000), "1.25 ms"),
      (.milliseconds(999), "999 ms"), (.milliseconds(48_230), "48.2 s"), (.seconds(119), "119 s"),
      (.milliseconds(2_202_900), "36 min 42 s"), (.seconds(18_430), "5 h 7 min"),
      (.seconds(604_800), "7 days"),
    ])
  func roundedDurations(duration: Duration, text: String) {
    #expect(TimeSpan.rounded(duration) == text)
  }

  @Test(
    "Times",
    arguments: [
      ("1970-01-01T00:00:00Z", 0), ("1970-01-01T00:00:00.001Z", 1), ("1969-12-31T23:59:59.999Z", -1),
      ("2000-02-29T12:00:00Z", 951_825_600_000), ("2026-02-03T04:05:06.789Z", 1_770_091_506_789),
      ("2026-02-03 04:05:06z", 1_770_091_506_000), ("2026-02-03T05:05:06+01:00", 1_770_091_506_000),
      ("2026-02-02T22:35:06.5-05:30", 1_770_091_506_500),
      ("2026-02-03T04:05:06.123456789Z", 1_770_091_506_123),
    ])
  func times(text: String, milliseconds: Int64) throws {
    #expect(try WallTime.parse(text) == milliseconds)
  }

  @Test(
    "What isn't a time is refused",
    arguments: [
      "", "now", "2026-02", "2026-02-30T00:00:00Z", "2026-13-01T00:00:00Z", "2026-02-03T24:00:00Z",
      "2026-02-03T04:05:06", "2026-02-03T04:05:06.Z", "2026-02-03T04:05:06Z ", "1900-02-29T00:00:00Z",
    ])
  func notTimes(text: String) {
    #expect(throws: ValueError.self) { try WallTime.parse(text) }
  }

  @Test("A time is written so that it reads back as the same")
  func timesRoundTrip() throws {
    #expect(WallTime.format(1_770_091_506_789) == "2026-02-03T04:05:06.789Z")
    // A step that reaches every day of a month and every hour of a day, over 400 years in total around 1970.
    for milliseconds in stride(from: Int64(-6_311_433_600_000), to: 6_311_433_600_000, by: 3_133_731_337) {
      #expect(try WallTime.parse(WallTime.format(milliseconds)) == milliseconds)
    }
  }

  @Test(
    "Counts",
    arguments: [
      ("0", 0), ("42", 42), ("10k", 10_000), ("3M", 3_000_000), ("2G", 2_000_000_000), ("1_000", 1000),
    ])
  func counts(text: String, count: UInt64) throws {
    #expect(try Values.count()(text) == count)
  }

  @Test(
    "What isn't a count is refused",
    arguments: ["", "k", "-1", "+1", "1.5", "0x10", "7x", "18446744073709551616"])
  func notCounts(text: String) {
    #expect(throws: ValueError.self) { try Values.count()(text) }
  }

  @Test("A count out of its range is told what the range is")
  func ranges() {
    #expect(throws: ValueError("0 isn't between 1 and 9")) { try Values.count(in: 1...9)("0") }
    #expect(throws: ValueError("0 is too small; it must be at least 1")) {
      try Values.count(in: 1...UInt64.max)("0")
    }
    #expect(throws: ValueError("'x' is neither a whole number nor 'unlimited'")) {
      try Values.countOrUnlimited()("x")
    }
    #expect(throws: Never.self) { try Values.countOrUnlimited()("unlimited") }
  }

  @Test("A choice suggests the word that was meant, or names them all")
  func choices() throws {
    let read = Values.choice(["text": 1, "json": 2, "raw": 3])
    #expect(try read("json") == 2)
    #expect(throws: ValueError("there is no 'jsn'; did you mean 'json'?")) { try read("jsn") }
    #expect(throws: ValueError("there is no 'yaml'; it can be text, json or raw")) { try read("yaml") }
  }

  @Test("Addresses with and without TLS, and paths")
  func addresses() throws {
    #expect(try Values.address("127.0.0.1:7420") == .host("127.0.0.1", port: 7420))
    #expect(try Values.address("tls://a:1") == .tls("a", port: 1))
    #expect(try Values.address("unix:/tmp/s") == .unix("/tmp/s"))
    #expect(throws: ValueError.self) { try Values.address("a") }
  }

  @Test(
    "Rates and counts for reading",
    arguments: [
      (0, "0"), (7, "7"), (999, "999"), (1500, "1.50 k"), (999_950, "1.00 M"), (12_345_678, "12.3 M"),
      (0.5, "0.50"),
    ])
  func magnitudes(value: Double, text: String) {
    #expect(Magnitude.rounded(value) == text)
  }

  @Test(
    "Numbers with separators",
    arguments: [(0, "0"), (999, "999"), (1000, "1,000"), (104_334, "104,334"), (1_234_567, "1,234,567")])
  func grouped(value: UInt64, text: String) {
    #expect(Magnitude.grouped(value) == text)
  }
}
