import FoundationEssentials
import SluiceIO
import SluiceNATS
import SluiceSimulation

/// A push consumer without acknowledgements, in the memory of one server, as created by ``JetStreamWatch``.
final class EngineConsumer {
  let name: String
  private unowned let stream: EngineStream
  private let home: EngineServerModel
  /// The process in which it runs.
  private let loop: SimulatedLoop
  private let inbox: String
  private let patterns: [String]
  private let heartbeat: Duration
  private let threshold: Duration
  /// The messages at its creation that haven't been sent yet.
  private var first: [UInt64]
  private var next: UInt64
  private var delivered: UInt64 = 0
  private var lastSequence: UInt64 = 0
  private var lastSent: MonotonicTime
  private var lastInterest: MonotonicTime
  private var isEnded = false
  /// The number of messages since the last reply to flow control, and the subject of the awaited reply.
  private var unconfirmed = 0
  private var awaited: String?

  private static let window = 64

  init(
    _ name: String, of stream: EngineStream, at home: EngineServerModel, to inbox: String,
    _ patterns: [String],
    heartbeat: Duration, threshold: Duration
  ) {
    self.name = name
    self.stream = stream
    self.home = home
    self.inbox = inbox
    self.patterns = patterns
    self.heartbeat = heartbeat
    self.threshold = threshold
    loop = home.loop
    let view = stream.view(of: home)
    first = view.lastMessages(matching: patterns, upTo: .max).map(\.sequence)
    next = view.lastSequence + 1
    lastSent = loop.now
    lastInterest = loop.now
  }

  var pendingCount: Int { first.count }

  private var engine: EngineModel { stream.engine }

  func start() {
    pump()
    beat()
  }

  func end() { isEnded = true }

  private func beat() {
    engine.run(on: home, after: heartbeat) { [weak self] in
      guard let self, !isEnded, loop === home.loop else { return }
      if engine.servers.contains(where: { $0.hasInterest(in: inbox) }) { lastInterest = loop.now }
      guard loop.now - lastInterest <= threshold else {
        isEnded = true
        stream.consumers[name] = nil
        return
      }
      if loop.now - lastSent >= heartbeat {
        var headers = [("Nats-Last-Consumer", "\(delivered)"), ("Nats-Last-Stream", "\(lastSequence)")]
        if let awaited { headers.append(("Nats-Consumer-Stalled", awaited)) }
        lastSent = loop.now
        engine.deliver(
          ModelMessage(inbox, status: "100 Idle Heartbeat", headers: headers), to: inbox, from: home)
      }
      beat()
    }
  }

  /// Sends new messages once this server's replica has them.
  func pumpWhenApplied() {
    guard !isEnded, loop === home.loop else { return }
    engine.run(on: home, after: home.lag) { [weak self] in self?.pump() }
  }

  func pump() {
    guard !isEnded, home.isRunning, loop === home.loop else { return }
    guard loop.isCurrent else { return engine.run(on: home) { [weak self] in self?.pump() } }
    let view = stream.view(of: home)
    while awaited == nil, let sequence = first.first {
      first.removeFirst()
      if let message = view[sequence] {
        send(message, pending: first.count + later(view).count)
      }
    }
    guard awaited == nil else { return }
    var rest = later(view)[...]
    while awaited == nil, let message = rest.popFirst() {
      next = message.sequence + 1
      send(message, pending: rest.count)
    }
  }

  private func later(_ view: StreamContents) -> [StreamContents.Message] {
    guard next <= view.lastSequence else { return [] }
    return view.all(from: next).filter { message in
      patterns.contains { NATSSubject.matches(message.subject, $0) }
    }
  }

  private func send(_ message: StreamContents.Message, pending: Int) {
    delivered += 1
    lastSequence = message.sequence
    lastSent = loop.now
    var copy = message.message
    copy.reply =
      "$JS.ACK.\(stream.name).\(name).1.\(message.sequence).\(delivered).\(message.time).\(pending)"
    engine.deliver(copy, to: inbox, from: home)
    unconfirmed += 1
    guard unconfirmed >= Self.window else { return }
    unconfirmed = 0
    let subject = "$JS.FC.\(stream.name).\(name).\(delivered)"
    awaited = subject
    engine.deliver(
      ModelMessage(inbox, reply: subject, status: "100 FlowControl Request"), to: inbox, from: home)
  }

  func answered(_ subject: String) {
    guard subject == awaited else { return }
    awaited = nil
    pump()
  }
}

extension EngineStream {
  private struct Request: Decodable {
    struct Configuration: Decodable {
      var deliver_subject: String
      var idle_heartbeat: Int64
      var inactive_threshold: Int64
      var filter_subjects: [String]
    }

    var config: Configuration
  }

  /// Creates a consumer at one of the servers.
  func createConsumer(_ name: String, _ request: ModelMessage) {
    guard let wanted = try? JSONDecoder().decode(Request.self, from: Data(request.payload)).config,
      engine.hasQuorum
    else { return }
    let homes = engine.servers.filter(\.isAvailable)
    let home = homes[engine.world.random.next(in: 0...(homes.count - 1))]
    engine.run(on: home) { [self] in
      let consumer = EngineConsumer(
        name, of: self, at: home, to: wanted.deliver_subject, wanted.filter_subjects,
        heartbeat: .nanoseconds(wanted.idle_heartbeat), threshold: .nanoseconds(wanted.inactive_threshold))
      consumers[name] = consumer
      engine.answer(
        request,
        #"{"stream_name":"\#(self.name)","name":"\#(name)","num_pending":\#(consumer.pendingCount)}"#,
        from: home)
      consumer.start()
    }
  }
}

extension EngineModel {
  func flowControlAnswered(_ subject: String) {
    let words = subject.split(separator: ".").map(String.init)
    guard words.count == 5 else { return }
    streams[words[2]]?.consumers[words[3]]?.answered(subject)
  }
}
