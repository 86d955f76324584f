import Synchronization
import TestSupport

/// A broker under attack, with a well-behaved publisher and subscriber beside it.
///
/// The attack must not affect these two: they exchange every record, once, in order. The time each record takes is printed but not checked. The
/// broker's memory is checked during the attack and after it.
final class AttackScene {
  let broker: BrokerProcess
  private let name: String
  private let pair: BystanderPair

  /// - Parameter options: the broker's options.
  convenience init(_ name: String, _ options: String...) throws { try self.init(name, options: options) }

  /// The same, with the options as an array.
  init(_ name: String, options: [String]) throws {
    self.name = name
    broker = try BrokerProcess(options: ["--loops", "2"] + options)
    pair = try BystanderPair(broker)
  }

  /// Runs `attack` twice, so that the second round finds the allocator's free memory left by the first one.
  ///
  /// - Parameters:
  ///   - most: the most bytes by which the broker may grow meanwhile.
  ///   - left: the most bytes by which it may have grown from the end of the first round to the end of the second.
  func run(growingBy most: Int, leaving left: Int = 12 << 20, _ attack: () throws -> Void) throws {
    let start = try broker.memory.resident
    let connections = try broker.metric("connections")
    let stop = Flag()
    let peak = Shared(0)
    let (broker, pair, after) = (broker, pair, Shared<[Int]>([]))
    try meanwhile {
      try concurrently(
        { try pair.goOn(until: stop) },
        {
          while !stop.isRaised {
            let now = try broker.memory.resident
            peak.update { $0 = max($0, now) }
            pause(0.02)
          }
        })
    } _: {
      defer { stop.raise() }
      for _ in 0..<2 {
        try attack()
        try eventually("the attackers are gone") { try broker.metric("connections") <= connections }
        try eventually("nothing waits for them") { try broker.metric("buffered_bytes") < 1 << 20 }
        let now = try broker.memory.resident
        after.update { $0.append(now) }
      }
    }
    try broker.requireRunning()
    func mebibytes(_ bytes: Int) -> Double { Double(bytes * 10 / (1 << 20)) / 10 }
    print(
      "\(name): beside it \(pair.latencies); the broker had \(mebibytes(start)) MiB, +\(mebibytes(peak.value - start)) at the most, "
        + "+\(mebibytes(after.value[0] - start)) and +\(mebibytes(after.value[1] - start)) after each round")
    try require(peak.value - start < most, "the broker grew by \(peak.value - start) bytes")
    try require(
      after.value[1] - after.value[0] < left,
      "each round leaves more: \(after.value[0] - start), then \(after.value[1] - start) bytes")
  }
}

/// A publisher and a subscriber that connect from an address of their own.
// @unchecked: used by one thread at a time, the test's thread and then the thread that it waits for.
final class BystanderPair: @unchecked Sendable {
  private let publisher: RawClient
  private let subscriber: RawClient
  private var sent: UInt64 = 0
  private var times: [UInt64] = []

  init(_ broker: BrokerProcess) throws {
    publisher = try broker.client("bystander", from: "127.3.3.3")
    subscriber = try broker.client("bystander", from: "127.3.3.3")
    try subscriber.subscribe("bystanders", stream: 1)
    subscriber.subscriptions[1]!.keepsPayloads = false
    subscriber.subscriptions[1]!.onRecord = { offset, body in
      let text = String(decoding: body, as: UTF8.self)
      try require(text == "\(offset)", "the record at \(offset) is \(text)")
    }
    try publisher.openPublication("bystanders", stream: 1)
    for _ in 0..<20 { try exchange() }
    times = []
  }

  /// Sends one record from the publisher to the subscriber.
  private func exchange() throws {
    let start = Deadline.now
    try publisher.publish(["\(sent)"], stream: 1)
    sent += 1
    try subscriber.receiveRecords(sent, stream: 1)
    times.append(Deadline.now - start)
  }

  func goOn(until stop: Flag) throws {
    while !stop.isRaised || times.count < 20 {
      try exchange()
      pause(0.002)
    }
    try publisher.receiveAcknowledgements(stream: 1)
    try require(subscriber.subscriptions[1]!.delivered == sent, "some records are missing")
  }

  var latencies: String {
    let sorted = times.sorted()
    func at(_ part: Double) -> Double { Double(sorted[Int(Double(sorted.count - 1) * part)] / 1000) / 1000 }
    return "\(sorted.count) records took p50 \(at(0.5)) ms, p99 \(at(0.99)) ms"
  }
}
