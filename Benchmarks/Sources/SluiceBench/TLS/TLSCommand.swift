import Glibc
import SluiceIO
import SluiceTLS

/// `sluice-bench tls`: the cost of TLS on one connection over loopback, compared with plain TCP and with the cipher alone.
enum TLSCommand {
  static let usage = """
    sluice-bench tls --certs DIR [--megabytes N] [--runs N] [--handshakes N]
      Sends N MB (2,000) from one loop to another over loopback, without TLS and with it, encrypts as much with AES-256-GCM alone, and shakes
      hands N times (1,000), in full and resumed. Medians of --runs (5), by the clock and by the processor's time on both sides together. DIR is made by scripts/certs.sh.
    """

  static func run(_ words: [String]) throws {
    var arguments = Arguments(words)
    guard let directory = try arguments.text("certs") else {
      throw UsageError("tls needs --certs, a directory that scripts/certs.sh has made")
    }
    let megabytes = try arguments.integer("megabytes", in: 1...100_000) ?? 2_000
    let runs = try arguments.integer("runs", in: 1...1000) ?? 5
    let handshakes = try arguments.integer("handshakes", in: 1...1_000_000) ?? 1_000
    try arguments.finish()

    let line = try TLSLine(certificates: directory)
    defer { line.stop() }
    let names =
      ["AES-256-GCM alone, one way"] + pieces.flatMap { ["plain, \($0) B pieces", "TLS, \($0) B pieces"] }
    var rates: [String: [Rate]] = [:]
    var shakes: [String: [Rate]] = [:]
    for _ in 0..<runs {
      rates[names[0], default: []].append(try rate(of: megabytes) { try encrypt(megabytes * 1_000_000) })
      for (index, name) in names.dropFirst().enumerated() {
        rates[name, default: []].append(
          try rate(of: megabytes) {
            try line.send(megabytes * 1_000_000, pieces: pieces[index / 2], secure: index % 2 == 1)
          })
      }
      for name in ["handshakes, full", "handshakes, resumed"] {
        shakes[name, default: []].append(
          try rate(of: handshakes) { try line.shakeHands(handshakes, resumed: name.hasSuffix("resumed")) })
      }
    }
    // CPU time counts the work of both sides, and doesn't depend on other work of the machine.
    var table = TextTable(header: ["", "a second", "a second of CPU", ""])
    func add(_ name: String, _ values: [Rate], _ unit: String) {
      table.add([
        name, Format.digits(Statistics.median(values.map(\.perSecond)) ?? 0),
        Format.digits(Statistics.median(values.map(\.perCPUSecond)) ?? 0), unit,
      ])
    }
    for name in names { add(name, rates[name] ?? [], "MB") }
    for (name, values) in shakes.sorted(by: { $0.key < $1.key }) { add(name, values, "") }
    print(table.rendered())
  }

  /// The sizes of writes: long ones, and those of a topic with small records.
  private static let pieces = [65_536, 1_000]

  private struct Rate {
    var perSecond: Double
    var perCPUSecond: Double
  }

  private static func rate(of amount: Int, _ body: () throws -> Void) throws -> Rate {
    let start = Moment(server: nil)
    try body()
    let spent = start.elapsed()
    return Rate(
      perSecond: Double(amount) / spent.wall * 1e9, perCPUSecond: Double(amount) / max(spent.process, 1) * 1e9
    )
  }

  private static func encrypt(_ bytes: Int) throws {
    guard BlockCipher.encrypt(blocks: bytes / 16_384, of: 16_384) else {
      throw BenchError("OpenSSL has no AES-256-GCM")
    }
  }
}
