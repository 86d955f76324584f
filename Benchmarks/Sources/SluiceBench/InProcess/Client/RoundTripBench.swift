import CLinux
import Glibc
import ReactiveCore
import SluiceClient
import SluiceWire

/// Round trips with a demand of 1: each record needs a request. For comparison, a program that only exchanges messages of the same sizes.
enum RoundTripBench {
  private static let trips = 20_000
  /// The size of DEMAND: the frame's header and a number.
  static let request = FrameHeader.size + 8

  /// The size of DELIVER with one record.
  static func answer(_ size: Int) -> Int {
    FrameHeader.size + DeliverHeader.size + RecordLayout.wordSize + size
  }

  static func cases(_ settings: ClientBenchSettings, _ stock: StockedTopic) -> [MicroCase] {
    let trips = min(trips, settings.records)
    let answer = answer(settings.size)
    let table = "round trips, \(request) B there, \(answer) B back"
    return [
      MicroCase(table, "bare TCP, blocking") { _ in try bare(trips, answer, polls: false) },
      MicroCase(table, "bare TCP, epoll on both sides") { _ in try bare(trips, answer, polls: true) },
      MicroCase(table, "broker, --demand 1, blocking raw client") { _ in
        try stock.stock()
        return try raw(settings, trips, polls: false)
      },
      MicroCase(table, "broker, --demand 1, epoll raw client") { _ in
        try stock.stock()
        return try raw(settings, trips, polls: true)
      },
      MicroCase(table, "broker, --demand 1, client library") { _ in
        try stock.stock()
        return try library(settings, trips)
      },
    ]
  }

  // MARK: Bare

  private static func bare(_ trips: Int, _ answer: Int, polls: Bool) throws -> [Reading] {
    var command = "{self} pong-server --port {port} --request \(request) --answer \(answer)"
    if polls { command += " --poll" }
    let server = try LaunchedServer(command: command)
    defer { server.stop() }
    let exchange = try Exchange(Socket.connect(port: server.port), polls: polls)
    defer { exchange.close() }
    let message = [UInt8](repeating: 0, count: request)
    return try measure(trips, server.process) {
      try exchange.send(message)
      try exchange.receive(answer)
    }
  }

  // MARK: The broker, without the library

  private static func raw(_ settings: ClientBenchSettings, _ trips: Int, polls: Bool) throws -> [Reading] {
    var connection = try SluiceHandshake(settings.target(topic: StockedTopic.name, keepsAll: true))
    try connection.request(
      Subscribe(topic: StockedTopic.name, start: .earliest, lag: .fail, grantedThrough: 0),
      answer: .subscribed)
    let exchange = try Exchange(connection.handshake.socket, polls: polls)
    defer { exchange.close() }
    var granted: UInt64 = 0
    let answer = answer(settings.size)
    return try measure(trips, settings.server) {
      granted += 1
      try exchange.send(Demand(grantedThrough: granted).encoded(stream: 1))
      // Some records have a time mark before them.
      try exchange.receive(answer, or: answer + RecordLayout.timeMarkSize)
    }
  }

  private static func measure(
    _ trips: Int, _ server: ServerProcess?, _ trip: () throws -> Void
  ) throws -> [Reading] {
    let start = Moment(server: server)
    for _ in 0..<trips { try trip() }
    let spent = start.elapsed()
    return readings(trips, time: spent.wall, client: spent.thread, server: spent.server)
  }

  /// - Parameters: in nanoseconds.
  private static func readings(_ trips: Int, time: Double, client: Double, server: Double?) -> [Reading] {
    let count = Double(trips)
    var readings = [
      Reading(Column("µs/trip"), time / count / 1e3), Reading(Column("trips/s", .count), count / time * 1e9),
      Reading(Column("client CPU µs"), client / count / 1e3),
    ]
    if let server { readings.append(Reading(Column("server CPU µs"), server / count / 1e3)) }
    return readings
  }

  // MARK: The broker, with the library

  private static func library(_ settings: ClientBenchSettings, _ trips: Int) throws -> [Reading] {
    try SubscribeBench.withClient(settings) { client in
      let meter = RecordMeter(total: trips)
      let start = Moment(server: settings.server)
      let subscriber = AnySubscriber<TopicRecord, ClientError>(
        receiveSubscription: { $0.request(.max(1)) },
        receiveValue: { record in
          meter.take(record)
          return record.offset + 1 < UInt64(trips) ? .max(1) : .none
        },
        receiveCompletion: { _ in meter.ended() })
      client.topic(StockedTopic.name, from: .earliest).subscribe(subscriber)
      try meter.wait()
      let spent = start.elapsed()
      return readings(trips, time: spent.wall, client: spent.process, server: spent.server)
    }
  }
}

/// Exchanges messages of known lengths on one socket, with a blocking read or with an epoll set.
private final class Exchange {
  private let socket: Socket
  private let poller: Poller?
  private let buffer = PinnedBuffer(count: 1 << 20)

  init(_ socket: Socket, polls: Bool) throws {
    self.socket = socket
    guard polls else {
      poller = nil
      return
    }
    socket.makeNonblocking()
    let poller = try Poller()
    poller.add(socket.descriptor, interest: Poller.readable, number: 0)
    self.poller = poller
  }

  func close() {
    socket.close()
  }

  func send(_ bytes: [UInt8]) throws {
    let count = Glibc.send(socket.descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    guard count == bytes.count else { throw BenchError("sending a request: \(errorText())") }
  }

  /// Receives one message that has one of two lengths.
  func receive(_ length: Int, or other: Int? = nil) throws {
    var received = 0
    while received < length || (received > length && received != other) {
      if let poller { _ = poller.wait(milliseconds: 10_000) }
      let count = recv(socket.descriptor, buffer.base + received, buffer.count - received, 0)
      guard count > 0 else { throw BenchError("waiting for an answer: \(errorText())") }
      received += count
      guard received <= other ?? length else {
        throw BenchError("\(received) bytes came where \(length) were expected")
      }
    }
  }
}
